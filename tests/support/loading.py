"""A small warehouse to load into: accepted runs of the demo source, and what is published of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sealbook.extract.ranges import singles
from sealbook.ledger import Ledger
from sealbook.load.loader import Loader
from sealbook.load.results import Loaded
from sealbook.model import PartitionKey, RunId, Verdict
from sealbook.model.publication import Published
from sealbook.model.selection import Selection
from sealbook.read.plan import plan_read
from sealbook.read.table import read_table
from sealbook.warehouse.encoding import digest_of
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.part_files import PartFiles
from tests.support.extraction import demo_extractor, demo_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "campaign_daily"

Rows = list[dict[str, Any]]


def no_spark() -> NoReturn:
    """Stand in for a session that must not be asked for."""
    raise AssertionError("Spark was started")


@dataclass(frozen=True)
class Warehouse:
    """A folder with raw partitions and artifacts, and the ledger over them."""

    folder: Path
    ledger: Ledger

    @property
    def raw_url(self) -> str:
        """Where raw partitions are sealed."""
        return str(self.folder / "raw")

    @property
    def url(self) -> str:
        """Where artifacts lie."""
        return str(self.folder / "warehouse")

    def seal(self, keys: Sequence[PartitionKey], *, rows: int = 5, restatement: int = 0) -> RunId:
        """Extract partitions as a new run; another restatement has other rows."""
        extractor = demo_extractor(self.folder, rows=rows, restatement=restatement)
        extractor(singles(keys))
        return extractor.run_id

    def accept(self, keys: Sequence[PartitionKey], run_id: RunId, *, rows: int = 5) -> None:
        """Accept a run of each partition."""
        self.ledger.judge(
            [
                Verdict.accept(key, run_id, schema_version="1", record_count=rows, validator_version="v")
                for key in keys
            ]
        )

    def demote(self, key: PartitionKey, run_id: RunId) -> None:
        """Reject the run that was accepted."""
        again = Verdict.reject(
            key, run_id, error_message="bad", validator_version="v", revalidation_id="again"
        )
        self.ledger.judge([again])

    def loader(self, spark: Callable[[], SparkSession]) -> Loader:
        """Return a loader of the demo's queries."""
        return Loader(
            self.ledger.pointers,
            demo_queries().values(),
            spark,
            raw_url=self.raw_url,
            warehouse_url=self.url,
        )

    def load(self, spark: SparkSession, *, rebuild: bool = False) -> dict[PartitionKey, Loaded]:
        """Plan, load, and return what came of each partition."""
        loader = self.loader(lambda: spark)
        results = list(chain.from_iterable(loader.run(loader.plan(Selection(), rebuild=rebuild))))
        by_key = {result.key: result for result in results}
        assert len(by_key) == len(results)
        return by_key

    def published(self) -> list[Published]:
        """Return what readers see."""
        return list(self.ledger.pointers.published(Selection(queries=QUERY)))

    def rows(self) -> dict[PartitionKey, Rows]:
        """Read what is published, and return the rows of each partition."""
        table = read_table(PartFiles(self.url), plan_read(self.ledger.pointers, demo_queries()[QUERY]))
        found: dict[PartitionKey, Rows] = {}
        for row in table.to_pylist():
            key = PartitionKey(row["source"], row["customer_id"], QUERY, row["logical_date"])
            found.setdefault(key, []).append(row)
        return found

    def parts(self, published: Published) -> list[Path]:
        """Return the files of what readers see of a partition."""
        return [Path(self.url) / path for path in part_paths(published)]

    def check_intact(self) -> None:
        """See that every published artifact is wholly there, just as its load record says."""
        for each in self.published():
            data = [file.read_bytes() for file in self.parts(each)]
            assert digest_of([sha256(part).hexdigest() for part in data]) == each.digest
            assert sum(map(len, data)) == each.bytes

    def files(self) -> dict[str, bytes]:
        """Return every file of the warehouse but drafts, by its path."""
        return dict(self._files())

    def _files(self) -> Iterator[tuple[str, bytes]]:
        root = Path(self.url)
        for file in sorted(root.glob("*/**/*")):
            if file.is_file() and not file.is_relative_to(root / "_drafts"):
                yield str(file.relative_to(root)), file.read_bytes()
