"""`partition_status.parquet` has the columns and types of ADR-026, for Spark, DuckDB and pyarrow alike."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import MapType, StringType, TimestampType

import sealbook
from sealbook.model.selection import Selection
from tests.support.cli import run
from tests.support.ledger import run_id
from tests.support.statuses import QUERIES, accepted, days, judge, key, rejected, write_status_book

COLUMNS = {
    "tenant_id": "string",
    "workspace_id": "string",
    "asset_key": "string",
    "partition_key": "string",
    "last_materialization_run_id": "string",
    "last_materialization_at": "timestamp",
    "last_materialization_code_version": "string",
    "last_attempt_run_id": "string",
    "last_attempt_at": "timestamp",
    "last_attempt_outcome": "string",
    "stale_since": "timestamp",
    "stale_reason_code": "string",
    "partition_values": "map<string,string>",
    "row_version": "string",
}
"""Those of the ADR, in its order."""

FIRST, SECOND = days(2)
PUBLISHED, FAILED = key("a", FIRST), key("a", SECOND)


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Path:
    write_status_book(tmp_path, ledger_url, customers="ab", first_day=FIRST)
    judge(tmp_path, [accepted(PUBLISHED), rejected(FAILED)])
    judge(tmp_path, [rejected(PUBLISHED, 2)])
    return tmp_path


def test_the_file_is_the_same_to_all_three(book: Path, spark: SparkSession) -> None:
    ran = run("status", "export", cwd=book)
    file = book / "partition_status.parquet"
    count = 2 * 2 * len(QUERIES)
    assert (ran.code, ran.said) == (0, f"Wrote {count} partitions to partition_status.parquet ")

    frame = spark.read.parquet(str(file))
    assert {each.name: each.dataType.simpleString() for each in frame.schema} == COLUMNS
    by_spark = {row.partition_key + row.asset_key: row.asDict(recursive=True) for row in frame.collect()}

    table = pq.read_table(file)
    assert table.schema.field("last_attempt_at").type == pa.timestamp("us", tz="UTC")
    assert table.schema.field("partition_values").type == pa.map_(pa.string(), pa.string())
    by_arrow = {
        row["partition_key"] + row["asset_key"]: row for row in table.to_pylist(maps_as_pydicts="strict")
    }

    query = f"select * from '{file}'"
    kinds = {name: kind for name, kind, *_ in duckdb.execute(f"describe {query}").fetchall()}
    assert kinds["partition_values"] == "MAP(VARCHAR, VARCHAR)"
    assert kinds["last_attempt_at"] == "TIMESTAMP WITH TIME ZONE"
    counted = duckdb.execute(f"select count(*), count(last_attempt_at) from '{file}'").fetchall()
    assert counted == [(count, 2)]

    assert len(by_spark) == len(by_arrow) == count
    name = f"customer_id=a,logical_date={FIRST}demo/campaign_daily"
    row = by_arrow[name]
    assert {**row, "row_version": None, "last_materialization_at": None, "last_attempt_at": None} == {
        **dict.fromkeys(COLUMNS),
        "tenant_id": "default",
        "workspace_id": "default",
        "asset_key": "demo/campaign_daily",
        "partition_key": f"customer_id=a,logical_date={FIRST}",
        "partition_values": {"customer_id": "a", "logical_date": FIRST.isoformat()},
        "last_materialization_run_id": run_id(1),
        "last_attempt_run_id": run_id(2),
        "last_attempt_outcome": "FAILED",
    }
    assert row["last_materialization_at"] < row["last_attempt_at"]
    assert len(row["row_version"]) == 26
    for each, arrow in by_arrow.items():
        spark_row = {
            column: value.astimezone(UTC) if isinstance(value, datetime) else value
            for column, value in by_spark[each].items()
        }
        assert spark_row == arrow


def test_what_is_missing_is_exported_too(book: Path) -> None:
    """R-PST-6."""
    run("status", "export", "out.parquet", "--customer", "b", cwd=book)
    rows = pq.read_table(book / "out.parquet").to_pylist()
    assert len(rows) == 2 * len(QUERIES)
    assert {row["row_version"] for row in rows} == {None}


def test_what_is_there_is_replaced_and_nothing_else_is_left(book: Path) -> None:
    (book / "out").mkdir()
    for _ in range(2):
        run("status", "export", "out", cwd=book)
    assert [each.name for each in (book / "out").iterdir()] == ["partition_status.parquet"]


def test_whose_partitions_they_are(tmp_path: Path, ledger_url: str) -> None:
    write_status_book(tmp_path, ledger_url, first_day=FIRST, tenant="us", workspace="ads")
    run("status", "export", cwd=tmp_path)
    table = pq.read_table(tmp_path / "partition_status.parquet", columns=["tenant_id", "workspace_id"])
    assert {tuple(row.values()) for row in table.to_pylist()} == {("us", "ads")}


def test_there_is_no_such_folder(book: Path) -> None:
    ran = run("status", "export", "gone/out.parquet", cwd=book)
    assert ran.code == 2
    assert "there is no folder gone" in ran.said


def test_the_same_as_arrow_and_as_a_frame(book: Path, spark: SparkSession) -> None:
    chosen = Selection(customers="a", queries="campaign_daily")
    with sealbook.open(book) as opened:
        table = opened.status(chosen)
        frame = opened.status_frame(chosen, spark)
        counts = opened.status_counts(chosen)
        reader = opened.reader.status(chosen)
    assert table.schema.names[: len(COLUMNS)] == list(COLUMNS)
    assert table.column("display").to_pylist() == ["MaterializedButLastAttemptFailed", "NeverMaterialized"]
    assert table.column("availability").to_pylist() == ["published", "none"]
    assert reader == table
    assert counts.total == table.num_rows
    assert frame.schema["partition_values"].dataType == MapType(StringType(), StringType())
    assert frame.schema["stale_since"].dataType == TimestampType()
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    assert [row["partition_values"] for row in rows] == [
        {"customer_id": "a", "logical_date": day.isoformat()} for day in (FIRST, SECOND)
    ]
    assert [row["stale_reasons"] for row in rows] == table.column("stale_reasons").to_pylist()
