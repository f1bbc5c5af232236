"""`spark.readStream.format("sealbook_changes")`: each change once, also across stops and kills (R-CON-5)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sealbook
from sealbook.book import Book
from sealbook.errors import ConfigError
from sealbook.read.frame import register
from tests.support.ledger import accept, reject, run_id
from tests.support.published import CONTRACTS, QUERY, key, open_book, publish, sorted_rows, write, write_book

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

PROGRAM = """
import sys
import sealbook
from sealbook.config import SparkSettings
from sealbook.spark.session import spark_session

spark = spark_session(SparkSettings(master="local[1]", config={"spark.driver.memory": "512m"}))

def take(frame, batch):
    frame.write.mode("overwrite").parquet(f"taken/batch={batch}")
    if batch == 1:
        print("taken", flush=True)
        sys.stdin.read()

with sealbook.open(read_only=True) as book:
    frame = book.stream("campaign_daily", rows=True, most=1, spark=spark)
    frame.writeStream.foreachBatch(take).option("checkpointLocation", "checkpoint").start().awaitTermination()
"""
"""A program that is killed when it has taken the second batch, and before Spark knows that."""


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    """A book with a configuration that the driver's Python process can read."""
    with sealbook.open(write_book(tmp_path)) as opened:
        yield opened


def drain(frame: DataFrame, folder: Path, take: Callable[[DataFrame, int], None]) -> None:
    """Take all that is there, in batches, and stop."""
    writer = frame.writeStream.option("checkpointLocation", str(folder)).trigger(availableNow=True)
    query = writer.foreachBatch(take).start()
    query.awaitTermination()


def collect(into: list[list[dict[str, Any]]]) -> Callable[[DataFrame, int], None]:
    return lambda frame, _batch: into.append([row.asDict() for row in frame.collect()])


def told(book: Book) -> list[tuple[object, ...]]:
    return [(*each[:4], each.kind.value, *each[5:8], each.at) for each in book.changes(QUERY).items]


def apply(copy: dict[tuple[Any, ...], list[Any]], batch: list[dict[str, Any]]) -> None:
    """Do what the how-to says: drop each partition that a batch has, and put in what it has of it now."""
    partitions = {(row["source"], row["customer_id"], row["logical_date"]) for row in batch}
    for each in partitions:
        copy.pop(each, None)
    for row in batch:
        if row["_record_count"]:
            place = (row["source"], row["customer_id"], row["logical_date"])
            own = {name: value for name, value in row.items() if not name.startswith("_")}
            copy.setdefault(place, []).append(own)
            assert row["run_id"] is not None


def rows_now(book: Book) -> list[tuple[str, ...]]:
    table = book.table(QUERY)
    naive = [{**row, "at": row["at"].replace(tzinfo=None)} for row in table.to_pylist()]
    return sorted_rows(naive)


def history(book: Book) -> Iterator[None]:
    """Publish, replace, empty, demote, restore and roll back, with two versions of the schema."""
    ledger, warehouse = book.ledger, book.settings.warehouse
    publish(ledger, warehouse, [key(0), key(1), key(2)], 1, rows=3)
    yield
    publish(ledger, warehouse, [key(0)], 2, version="2", rows=2)
    publish(ledger, warehouse, [key(1)], 3, rows=0)
    ledger.judge([reject(key(2), 1, again="a")])  # withdrawn, and no load has come by
    yield
    ledger.pointers.hide()
    publish(ledger, warehouse, [key(0)], 5, version="2", rows=4)
    ledger.judge([accept(key(2), 1, again="b", records=3)])
    ledger.pointers.swap([write(warehouse, key(2), 1, contract=CONTRACTS["1"], rows=3)])
    ledger.rollback(key(0), run_id(2), actor="ann", reason="to try it")
    ledger.pointers.swap([write(warehouse, key(0), 2, contract=CONTRACTS["2"], rows=2)])
    yield


def test_a_stream_that_is_stopped_again_and_again_tells_each_change_once(
    book: Book, spark: SparkSession, tmp_path: Path
) -> None:
    """Without rows it is `book.changes`; with rows, whoever applies them has `book.table`."""
    changes: list[list[dict[str, Any]]] = []
    batches: list[list[dict[str, Any]]] = []
    copy: dict[tuple[Any, ...], list[Any]] = {}
    for _ in history(book):
        drain(book.stream(QUERY, spark=spark), tmp_path / "changes", collect(changes))
        rows = book.stream(QUERY, rows=True, most=2, spark=spark)
        had = len(batches)
        drain(rows, tmp_path / "rows", collect(batches))
        for batch in batches[had:]:
            apply(copy, batch)
        assert sorted_rows(row for each in copy.values() for row in each) == rows_now(book)
    found = [tuple(row.values()) for batch in changes for row in batch]
    # A verdict is told when it is given, and has no time: who asks later is told of the load after it.
    assert sorted(row[:7] for row in found if row[8]) == sorted(
        row[:7] for row in told(book) if row[4] != "withdrawn"
    )
    assert [row[4:7] for row in found if row[8] is None] == [("withdrawn", run_id(1), None)]
    assert [len({row["customer_id"] for row in batch}) for batch in batches] == [2, 1, 2, 1, 1]
    marked = {
        (row["_change"], row["run_id"]) for batch in batches for row in batch if not row["_record_count"]
    }
    assert marked == {("replaced", run_id(3)), ("withdrawn", None)}
    assert rows.columns[: len(book.table(QUERY).column_names)] == book.table(QUERY).column_names


def test_a_stream_killed_before_spark_knew_of_a_batch_gives_that_batch_again(
    book: Book, spark: SparkSession, tmp_path: Path
) -> None:
    """The batch is the same, whatever was published and demoted meanwhile, and the rest follows once."""
    ledger, warehouse = book.ledger, book.settings.warehouse
    publish(ledger, warehouse, [key(0), key(1), key(2)], 1, rows=3)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, program],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "taken\n"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def taken(batch: int) -> list[dict[str, Any]]:
        frame = spark.read.parquet(str(tmp_path / "taken" / f"batch={batch}"))
        return [row.asDict() for row in frame.collect()]

    killed = taken(1)
    ledger.judge([reject(key(1), 1, again="a")])
    publish(ledger, warehouse, [key(0)], 2, version="2", rows=1)
    numbers: list[int] = []
    batches: list[list[dict[str, Any]]] = [taken(0)]

    def take(frame: DataFrame, batch: int) -> None:
        numbers.append(batch)
        collect(batches)(frame, batch)

    drain(book.stream(QUERY, rows=True, most=1, spark=spark), tmp_path / "checkpoint", take)
    assert numbers == [1, 2, 3, 4]
    assert sorted_rows(batches[1]) == sorted_rows(killed)
    assert {row["customer_id"] for row in killed} == {"c1"}
    copy: dict[tuple[Any, ...], list[Any]] = {}
    for batch in batches:
        apply(copy, batch)
    assert sorted_rows(row for each in copy.values() for row in each) == rows_now(book)


def test_options_choose_partitions_columns_and_the_start(
    book: Book, spark: SparkSession, tmp_path: Path
) -> None:
    ledger, warehouse = book.ledger, book.settings.warehouse
    publish(ledger, warehouse, [key(0)], 1, rows=1)
    ledger.pointers.create_cut("month_end")
    publish(ledger, warehouse, [key(0), key(1), key(0, 1)], 2, rows=1)
    publish(ledger, warehouse, [key(0, query="clicks")], 2, rows=1)
    register(spark)
    options = {
        "book": str(tmp_path),
        "query": QUERY,
        "rows": "true",
        "customers": "c0",
        "until": "2026-01-01",
    }
    reader = spark.readStream.format("sealbook_changes").options(**options).option("AFTER", "month_end")
    found: list[list[dict[str, Any]]] = []
    frame = reader.schema("_change string, customer_id string, clicks bigint").load()
    drain(frame, tmp_path / "checkpoint", collect(found))
    assert found == [[{"_change": "replaced", "customer_id": "c0", "clicks": 2}]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"password": "x"}, "option"),
        ({"maxPartitionsPerBatch": "0"}, "a number from 1 on"),
        ({"rows": "yes"}, "true or false"),
        ({"after": "nowhere"}, "no cut"),
    ],
)
def test_what_is_asked_wrongly_is_said(
    options: dict[str, str], said: str, book: Book, spark: SparkSession, tmp_path: Path
) -> None:
    _ = book.ledger
    register(spark)
    reader = spark.readStream.format("sealbook_changes").options(book=str(tmp_path), query=QUERY)
    with pytest.raises(Exception, match=said):
        drain(reader.options(**options).load(), tmp_path / "checkpoint", collect([]))


def test_a_book_without_a_file_is_no_stream(
    sqlite_template: Path, tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "book.db").write_bytes(sqlite_template.read_bytes())
    with (
        open_book(f"sqlite:///{tmp_path}/book.db", tmp_path / "warehouse", CONTRACTS) as opened,
        pytest.raises(ConfigError, match="not read from a file"),
    ):
        opened.stream(QUERY, spark=spark)
