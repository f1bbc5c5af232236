"""Schema versions through whole loads (R-WH-6): two side by side, upgrade by reload, downgrade by a new run.

Acceptance criterion 3 of the contract: "Schema evolution is explicitly tied to `schema_version`, and loaders
are required to treat differing versions as separate replacement events."
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from sealbook.book import Book
from sealbook.errors import Irreconcilable
from sealbook.load.loader import Loader
from sealbook.load.results import LoadEnding
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from tests.support.ledger import accept, run_id
from tests.support.published import IRRECONCILABLE, QUERY, SOURCE, key, open_book
from tests.support.s3 import SEAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

A, B = key(0, 0), key(0, 1)
COLUMNS = ("logical_date", "schema_version", "run_id", "id", "clicks", "share")
ROWS: dict[str, dict[str, Any]] = {
    "1": {"id": 1, "clicks": 7, "share": 0.5, "old": True},
    "2": {"id": 1, "name": "x", "clicks": 2**40, "share": 0.1},
    "3": {"id": 1, "clicks": "seven"},
}
"""A row of each version; the types of 2 are wider, and those of 3 cannot be reconciled."""


@dataclass(frozen=True)
class Versions:
    """A book, and loads of runs of any version into it."""

    book: Book
    raw: RawStore
    spark: SparkSession

    def publish(self, run: int, version: str, *keys: PartitionKey) -> dict[PartitionKey, LoadEnding]:
        """Seal a run of some partitions, accept it, and load."""
        for each in keys:
            written = self.raw.write(each, run_id(run), [ROWS[version]])
            self.raw.seal(each, run_id(run), written, **{**SEAL, "schema_version": version})
        self.book.ledger.judge([accept(each, run, version=version, records=1) for each in keys])
        loader = Loader(
            self.book.ledger.pointers,
            self.book.settings.sources[SOURCE].queries.values(),
            lambda: self.spark,
            raw_url=self.raw.url,
            warehouse_url=self.book.settings.warehouse,
        )
        return {each.key: each.ending for each in chain.from_iterable(loader.run(loader.plan(Selection())))}

    def rows(self) -> list[dict[str, Any]]:
        """Read all that is published, and see that both of Spark's scans give the same."""
        table = self.book.table(QUERY, columns=COLUMNS)
        rows: list[dict[str, Any]] = table.to_pylist()
        for scan in ("source", "parquet"):
            frame = self.book.read(QUERY, spark=self.spark, scan=scan, columns=COLUMNS)
            assert [row.asDict() for row in frame.orderBy("logical_date").collect()] == rows
        return rows


@pytest.fixture
def versions(tmp_path: Path, spark: SparkSession) -> Iterator[Versions]:
    with open_book(f"sqlite:///{tmp_path}/book.db", tmp_path / "warehouse") as book:
        yield Versions(book, RawStore.open(tmp_path / "raw"), spark)


def test_another_version_replaces_and_both_live_side_by_side(versions: Versions) -> None:
    """Each version is a physical table; a read has the superset, widened, with schema_version as a column."""
    assert versions.publish(1, "1", A, B) == {A: LoadEnding.LOADED, B: LoadEnding.LOADED}
    assert versions.publish(2, "2", A) == {A: LoadEnding.REPLACED}

    table = versions.book.table(QUERY)
    assert table.schema.field("clicks").type == pa.int64()
    assert table.schema.field("share").type == pa.float64()
    assert table.select(["schema_version", "clicks", "name", "old"]).to_pylist() == [
        {"schema_version": "2", "clicks": 2**40, "name": "x", "old": None},
        {"schema_version": "1", "clicks": 7, "name": None, "old": True},
    ]
    assert [
        each.location.split("/")[2]
        for each in versions.book.ledger.pointers.published(Selection(queries=QUERY))
    ] == [
        "schema_version=2",
        "schema_version=1",
    ]


def test_upgrade_by_reload_and_downgrade_by_a_new_run(versions: Versions) -> None:
    """ "every logical partition referencing that version must be fully reloaded"; a downgrade is "another
    replacement", of a new run."""
    versions.publish(1, "1", A, B)
    assert versions.publish(2, "2", A, B) == {A: LoadEnding.REPLACED, B: LoadEnding.REPLACED}
    assert [row["schema_version"] for row in versions.rows()] == ["2", "2"]

    assert versions.publish(3, "1", A) == {A: LoadEnding.REPLACED}

    assert [(row["schema_version"], row["run_id"], row["clicks"]) for row in versions.rows()] == [
        ("1", run_id(3), 7),
        ("2", run_id(2), 2**40),
    ]


def test_a_column_that_cannot_be_reconciled_is_named_to_who_asks_for_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    """R-CON-6: the other columns are there for everybody."""
    with open_book(f"sqlite:///{tmp_path}/book.db", tmp_path / "warehouse", IRRECONCILABLE) as book:
        versions = Versions(book, RawStore.open(tmp_path / "raw"), spark)
        versions.publish(1, "2", A)
        versions.publish(2, "3", B)
        for read in (book.table, partial(book.read, spark=spark)):
            with pytest.raises(
                Irreconcilable, match=r"clicks.*bigint in schema_version 2.*string in schema_version 3"
            ):
                read(QUERY)
        for scan in ("source", "parquet"):
            frame = book.read(QUERY, spark=spark, scan=scan, columns=["id", "name"])
            assert frame.count() == book.table(QUERY, columns=["id", "name"]).num_rows == 2
