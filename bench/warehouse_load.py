"""Sealed payloads to load, and warehouses to load them into, for measuring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Self

from bench.warehouse_peers import forget
from sealbook.book import Book
from sealbook.config import RetentionSettings, Settings, SourceSettings, SparkSettings
from sealbook.extract.job import extract
from sealbook.extract.ranges import singles
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.load.loader import Loader
from sealbook.load.results import LoadEnding
from sealbook.model import PartitionKey, RunId, Verdict
from sealbook.model.artifacts import Staged, SwapResult
from sealbook.model.claims import Fences
from sealbook.model.selection import Selection
from sealbook.raw.layout import RunPaths
from sealbook.warehouse.layout import part_paths
from tests.support.extraction import demo_extractor, demo_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "campaign_daily"
ROWS = 200


@dataclass
class Raw:
    """Sealed payloads, which all contenders read."""

    spark: SparkSession
    folder: Path
    names: Iterator[int] = field(default_factory=count)

    def extract(self, keys: Sequence[PartitionKey], restatement: int) -> RunId:
        """Seal a run of partitions."""
        extractor = demo_extractor(self.folder, threads=8, rows=ROWS, restatement=restatement)
        assert all(each.seal for each in chain.from_iterable(extract(self.spark, extractor, singles(keys))))
        return extractor.run_id

    def path(self, key: PartitionKey, run_id: RunId) -> str:
        """Return where a payload is."""
        [path] = (self.folder / "raw" / RunPaths(key, run_id).directory).glob("payload*.jsonl")
        return str(path)

    def new_folder(self) -> Path:
        """Return a name that nobody has used."""
        return self.folder / f"out-{next(self.names)}"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Give a new folder to write to, which is deleted after the block."""
        folder = self.new_folder()
        try:
            yield folder
        finally:
            forget(folder)


class Warehouse:
    """An empty warehouse with a ledger of its own, over the payloads; it notes the time of its swaps."""

    def __init__(self, raw: Raw) -> None:
        self.folder = raw.new_folder()
        self.folder.mkdir()
        self.swapping = 0.0
        source = SourceSettings("demo", (), demo_queries(), {})
        self.book = Book(
            Settings(
                root=self.folder,
                ledger=f"sqlite:///{self.folder}/book.db",
                raw=str(raw.folder / "raw"),
                warehouse=str(self.folder / "warehouse"),
                sources={"demo": source},
                spark=SparkSettings(),
                retention=RetentionSettings(str(self.folder / "archive")),
            )
        )
        self._swap = self.book.ledger.pointers.swap
        self.book.ledger.pointers.swap = self._timed_swap  # type: ignore[method-assign]
        self._spark = raw.spark

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.book.close()
        forget(self.folder)

    def accept(self, keys: Sequence[PartitionKey], run_id: RunId) -> None:
        """Accept a run of partitions."""
        self.book.ledger.judge(
            [
                Verdict.accept(key, run_id, schema_version="1", record_count=ROWS, validator_version="v")
                for key in keys
            ]
        )

    def load(self, selection: Selection = EVERYTHING) -> int:
        """Plan and load; return how many were published."""
        loader = self.loader
        results = list(chain.from_iterable(loader.run(loader.plan(selection))))
        assert {each.ending for each in results} <= {LoadEnding.LOADED, LoadEnding.REPLACED}
        return len(results)

    @property
    def loader(self) -> Loader:
        """The loader, on the session that is warm."""
        settings = self.book.settings
        queries = demo_queries().values()
        return Loader(
            self.book.ledger.pointers,
            queries,
            lambda: self._spark,
            raw_url=settings.raw,
            warehouse_url=settings.warehouse,
        )

    @property
    def files(self) -> list[str]:
        """The files that pointers name."""
        root = self.book.settings.warehouse
        published = self.book.ledger.pointers.published(Selection(queries=QUERY))
        return [f"{root}/{path}" for each in published for path in part_paths(each)]

    def _timed_swap(self, staged: Iterable[Staged], under: Fences | None = None) -> SwapResult:
        started = perf_counter()
        try:
            return self._swap(staged, under)
        finally:
            self.swapping += perf_counter() - started
