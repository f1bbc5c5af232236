"""Columns that were renamed, decimals that were widened: one column for every reader (R-WH-6, R-CON-6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.book import Book
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract
from tests.support.ledger import accept
from tests.support.published import QUERY, contract, key, open_book, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

VERSIONS = {
    "1": contract("1", id="int", clicks="int", price="decimal(5,2)"),
    "2": contract("2", id="int", taps="bigint", price="decimal(7,1)"),
}
TAPS = Column("taps", ColumnType.BIGINT, renamed_from="clicks")
VERSIONS["2"] = replace(VERSIONS["2"], columns=(VERSIONS["2"].columns[0], TAPS, VERSIONS["2"].columns[2]))
COLUMNS = ["logical_date", "schema_version", "id", "taps", "price"]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    with open_book(f"sqlite:///{tmp_path}/book.db", tmp_path / "warehouse", VERSIONS) as opened:
        for day, version in enumerate(VERSIONS, start=1):
            publish(opened, day, VERSIONS[version])
        yield opened


def publish(book: Book, day: int, its: Contract, run: int | None = None) -> None:
    book.ledger.judge([accept(key(0, day), run or day, version=its.schema_version, records=2)])
    book.ledger.pointers.swap([write(book.settings.warehouse, key(0, day), run or day, contract=its, rows=2)])


def test_every_reader_has_one_column(book: Book, spark: SparkSession) -> None:
    table = book.table(QUERY, columns=COLUMNS)
    assert [(each["schema_version"], each["taps"]) for each in table.to_pylist()] == [
        *[("1", 1)] * 2,
        *[("2", 0), ("2", 1)],
    ]
    assert table.column("price").to_pylist() == [Decimal("0.00"), Decimal("1.00")] * 2
    assert str(table.schema.field("price").type) == "decimal128(8, 2)"
    names = ", ".join(COLUMNS)
    assert book.sql(f"select {names} from {QUERY}") == table
    assert book.sql(f"select {names} from {QUERY} where schema_version = '2'") == table.slice(2)
    assert book.sql(f"select {names} from {QUERY} where taps = 1 and price = 0") == table.slice(0, 1)
    assert "clicks" not in book.table(QUERY).column_names
    for scan in ("source", "parquet"):
        frame = book.read(QUERY, spark=spark, columns=COLUMNS, scan=scan).orderBy("logical_date", "id")
        assert [row.asDict() for row in frame.collect()] == table.to_pylist()
        assert book.read(QUERY, spark=spark, scan=scan).where("taps = 1").count() == 3


def test_a_read_of_the_old_version_alone_has_the_new_name(book: Book) -> None:
    """R-CON-6: columns follow from the query, not from what is selected."""
    assert book.table(QUERY, until="2026-01-02", columns=["taps"]).to_pylist() == [{"taps": 1}] * 2


def test_a_cut_reads_through_a_later_renaming(book: Book, tmp_path: Path) -> None:
    """R-WH-7: the rows of a cut are there, under the names of today."""
    token = book.ledger.pointers.create_cut("before").token
    third = Contract(QUERY, "3", (Column("touches", ColumnType.BIGINT, renamed_from="taps"),))
    with open_book(book.settings.ledger, tmp_path / "warehouse", {**VERSIONS, "3": third}, "3") as later:
        publish(later, 1, third, run=9)
        rows = later.table(QUERY, cut=token, columns=["touches"]).to_pylist()
    assert [each["touches"] for each in rows] == [1, 1, 0, 1]
