"""`Book.read` and `spark.read.format("sealbook")`: both scans give the rows that `Book.table` gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from sealbook.book import Book
from sealbook.errors import InvalidInput, Irreconcilable
from sealbook.model.selection import Selection
from sealbook.read.frame import Scan, quicker_scan, register
from sealbook.read.schema import reconcile
from sealbook.read.source import spark_schema
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.part_files import PartFiles
from tests.support.books import CATALOGUE, SETTINGS, changed, write_book
from tests.support.ledger import KEY, accept, reject, run_id
from tests.support.published import (
    CONTRACTS,
    FIRST_DAY,
    QUERY,
    key,
    open_book,
    publish,
    sorted_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

KEYS = [key(customer, day) for customer in range(2) for day in range(3)]
SCANS = [Scan.SOURCE, Scan.PARQUET]


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    """Two versions, one artifact in parts, one without rows; in a folder whose name must be spelt out."""
    warehouse = tmp_path / "ware house ä=%20"
    with open_book(f"sqlite:///{tmp_path}/book.db", warehouse) as opened:
        publish(opened.ledger, warehouse, KEYS[:3], version="1", parts=2)
        publish(opened.ledger, warehouse, KEYS[3:5], version="2", run=2)
        publish(opened.ledger, warehouse, KEYS[5:], version="2", run=3, rows=0)
        yield opened


def rows(frame: DataFrame) -> list[tuple[str, ...]]:
    return sorted_rows(row.asDict() for row in frame.collect())


def table_rows(book: Book, **asked: Any) -> list[tuple[str, ...]]:
    naive = [
        {name: value.replace(tzinfo=None) if name == "at" and value else value for name, value in row.items()}
        for row in book.table(QUERY, **asked).to_pylist()
    ]
    return sorted_rows(naive)


@pytest.mark.parametrize("scan", SCANS)
def test_both_scans_give_the_rows_of_the_table(scan: Scan, book: Book, spark: SparkSession) -> None:
    """R-CON-1, R-WH-6: versions, parts, nulls, times and an empty partition."""
    frame = book.read(QUERY, spark=spark, scan=scan)
    assert frame.columns == book.table(QUERY).column_names
    assert [
        each.dataType.simpleString() for each in frame.schema if each.name in ("logical_date", "clicks")
    ] == [
        "date",
        "bigint",
    ]
    assert rows(frame) == table_rows(book)
    assert len(rows(frame)) == 50


@pytest.mark.parametrize("scan", list(Scan))
def test_columns_and_types_do_not_follow_what_is_selected(
    scan: Scan, book: Book, spark: SparkSession
) -> None:
    """R-CON-6: version 1 alone, version 2 alone, both, and nothing; Spark has the types of Arrow."""
    whole = spark_schema(reconcile(book.settings.sources["demo"].queries[QUERY]))
    assert to_arrow_schema(whole, timezone="UTC") == book.table(QUERY).schema
    for customers in (["c0"], ["c1"], ["c0", "c1"], []):
        frame = book.read(QUERY, spark=spark, scan=scan, customers=customers)
        assert frame.schema == whole
        assert rows(frame) == table_rows(book, customers=customers)


@pytest.mark.parametrize("scan", SCANS)
def test_a_frame_keeps_to_the_instant_of_its_read(scan: Scan, book: Book, spark: SparkSession) -> None:
    """R-CON-1: what is published or demoted later changes the next read, not this one."""
    frame = book.read(QUERY, spark=spark, scan=scan)
    before = rows(frame)
    publish(book.ledger, book.settings.warehouse, KEYS[:1], version="2", run=9)
    book.ledger.judge([reject(KEYS[3], 2, again="r")])
    assert rows(frame) == before
    assert rows(book.read(QUERY, spark=spark, scan=scan)) == table_rows(book)


@pytest.mark.parametrize("scan", SCANS)
def test_arguments_and_filters_of_a_frame(scan: Scan, book: Book, spark: SparkSession) -> None:
    """R-CON-2 too: strict leaves out what is behind."""
    book.ledger.judge([accept(KEYS[0], 7)])
    asked: dict[str, Any] = {"customers": ["c0"], "since": FIRST_DAY, "strict": True}
    assert rows(book.read(QUERY, spark=spark, scan=scan, **asked)) == table_rows(book, **asked)
    day = FIRST_DAY + timedelta(days=1)
    frame = book.read(QUERY, spark=spark, scan=scan, columns=["clicks", "logical_date", "run_id"])
    found = frame.where((frame.logical_date > FIRST_DAY) & (frame.logical_date <= day)).collect()
    assert {row.logical_date for row in found} == {day}
    assert len(found) == 20
    assert frame.where(frame.run_id.isin([run_id(2), "no run"])).count() == 20
    assert frame.where(frame.run_id == "no run").count() == 0


@pytest.mark.parametrize("scan", list(Scan))
def test_a_read_of_nothing_has_the_schema(scan: Scan, book: Book, spark: SparkSession) -> None:
    frame = book.read("clicks", spark=spark, scan=scan)
    assert frame.count() == 0
    assert frame.columns == book.table("clicks").column_names


def test_an_unknown_scan_is_refused(book: Book, spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="scan"):
        book.read(QUERY, spark=spark, scan="fast")


def test_few_or_large_files_are_for_sparks_own_scan(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    folder, bucket = PartFiles(book.settings.warehouse), PartFiles("s3://bucket")
    [one, *_] = book.ledger.pointers.published(Selection(queries=QUERY))
    assert quicker_scan(folder, [one] * 10) is Scan.PARQUET
    assert quicker_scan(folder, [one] * 1_000) is Scan.SOURCE
    assert quicker_scan(folder, [one._replace(bytes=2**26)] * 1_000) is Scan.PARQUET
    assert quicker_scan(bucket, [one] * 10) is Scan.SOURCE


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[tuple[Path, Book]]:
    """A book with a configuration that the driver's Python process can read."""
    import sealbook

    types = {column.name: {"type": str(column.type)} for column in CONTRACTS["1"].columns}
    wide = {column.name: {"type": str(column.type)} for column in CONTRACTS["2"].columns}
    catalogue = changed(
        CATALOGUE, "queries.campaign_daily.contracts", {"1": {"columns": types}, "2": {"columns": wide}}
    )
    file = write_book(tmp_path, SETTINGS, catalogue)
    with sealbook.open(file) as opened:
        yield file, opened


def test_the_format_plans_each_query_from_the_ledger(
    configured: tuple[Path, Book], spark: SparkSession
) -> None:
    """R-CON-1, R-WH-5: a view sees what is published when it is asked; filters reach the ledger."""
    file, book = configured
    warehouse = book.settings.warehouse
    keys = [
        type(KEY)(KEY.source, KEY.customer_id, QUERY, FIRST_DAY + timedelta(days=day)) for day in range(3)
    ]
    publish(book.ledger, warehouse, keys, version="1")
    register(spark)
    frame = spark.read.format("sealbook").option("book", str(file)).option("query", QUERY).load()
    assert frame.schema == book.read(QUERY, spark=spark).schema  # also of a version that nothing is of
    frame.createOrReplaceTempView("campaigns")
    count = "select count(*) n, min(run_id) r from campaigns where logical_date = date'2026-01-02'"
    assert tuple(spark.sql(count).first() or ()) == (10, run_id(1))
    # What the filter leaves out is not even opened.
    for each in book.ledger.pointers.published(Selection(queries=QUERY, since=keys[2].logical_date)):
        (Path(warehouse) / part_paths(each)[0]).unlink()
    assert tuple(spark.sql(count).first() or ()) == (10, run_id(1))
    publish(book.ledger, warehouse, keys[1:2], version="1", run=2, rows=4)
    assert tuple(spark.sql(count).first() or ()) == (4, run_id(2))
    book.ledger.judge([reject(keys[1], 2, again="r")])
    assert tuple(spark.sql(count).first() or ()) == (0, None)


def test_the_format_reads_the_columns_of_a_given_schema(
    configured: tuple[Path, Book], spark: SparkSession
) -> None:
    """R-WH-6: a declared type must hold what is published; a column that no version read has is null."""
    file, book = configured
    publish(book.ledger, book.settings.warehouse, [KEY], version="1")
    register(spark)

    def load(schema: str) -> DataFrame:
        reader = spark.read.format("sealbook").option("book", str(file)).option("query", QUERY)
        return reader.schema(schema).load()

    assert load("clicks bigint, name string").distinct().collect() == [(1, None)]
    with pytest.raises(Exception, match=Irreconcilable.__name__):
        load("clicks string").collect()


def test_two_threads_may_plan_the_same_read_at_once(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them saves the plan while the other is about to."""
    replace = Path.replace

    def overtaken(draft: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        book.read(QUERY, scan=Scan.SOURCE, customers="c0")
        return replace(draft, target)

    monkeypatch.setattr(Path, "replace", overtaken)
    frame = book.read(QUERY, scan=Scan.SOURCE, customers="c0")
    assert Path.replace is replace
    assert rows(frame) == table_rows(book, customers="c0")
