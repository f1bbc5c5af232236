"""The warehouse against DuckDB, Spark, pyarrow, Delta and Iceberg: the same rows on the same machine."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from bench.harness import Result, duration, medians, noted, seconds_of, speed
from bench.scale import sized
from bench.warehouse_load import QUERY, ROWS, Raw, Warehouse
from bench.warehouse_peers import DeltaTable, IcebergTable, duckdb_copy, spark_partition_by
from sealbook.config import SparkSettings
from sealbook.model import PartitionKey, RunId
from sealbook.model.selection import Selection
from sealbook.spark.session import spark_session
from tests.support.extraction import FIRST_DAY, demo_keys, demo_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS = sized(small=3, full=5)
CUSTOMERS, DAYS = 50, sized(small=40, full=100)
WARM_UP = 400
SIDE_BY_SIDE = 1_000
REPLACED_CUSTOMERS, REPLACED_DAYS = 10, 10
_ON_SPARK = "A load is a job of Spark, which takes its time to begin; the peer writes in one process."

COLUMNS = demo_queries()[QUERY].contracts["1"].columns
AGGREGATED = [column.name for column in COLUMNS if column.name.startswith(("metrics_", "segments_"))]
KEYS = demo_keys(CUSTOMERS, DAYS)


def run() -> list[Result]:
    """Measure on a local folder and SQLite, with two cores."""
    spark = spark_session(SparkSettings(master="local[2]", config={"spark.driver.memory": "4g"}))
    with tempfile.TemporaryDirectory() as folder:
        raw = Raw(spark, Path(folder))
        run_id = raw.extract(KEYS, restatement=0)
        _warm_up(raw, run_id)
        with ExitStack() as kept:
            results, warehouse = _loading(raw, run_id, kept)
            results += _reading(spark, warehouse)
            results += _reloading(warehouse)
        return results + _replacing(raw, run_id)


def _loading(raw: Raw, run_id: RunId, kept: ExitStack) -> tuple[list[Result], Warehouse]:
    """Load by turns with DuckDB, and once against Spark; return the last warehouse, which is kept."""
    payloads = str(raw.folder / "raw/demo/*/*/*/*/payload*.jsonl")
    paths = [raw.path(key, run_id) for key in KEYS]
    ours, swaps, peer = [], [], []
    for _ in range(ROUNDS):
        kept.close()
        warehouse = kept.enter_context(Warehouse(raw))
        warehouse.accept(KEYS, run_id)
        ours.append(seconds_of(warehouse.load))
        swaps.append(100 * warehouse.swapping / ours[-1])
        with raw.scratch() as folder:
            peer.append(seconds_of(partial(duckdb_copy, payloads, COLUMNS, folder)))
    assert len(warehouse.files) == len(KEYS)
    with raw.scratch() as folder:
        sparks = seconds_of(lambda: spark_partition_by(raw.spark, paths, COLUMNS, folder))
    mine, theirs, share = median(ours), median(peer), median(swaps)
    timed = "in each load: " + ", ".join(f"{one:.1f}" for one in swaps)
    what = f"load {len(KEYS):,} partitions of {ROWS} rows"
    return [
        duration(
            f"{what}, against DuckDB's COPY",
            mine,
            theirs,
            at_most=0.9,
            detail=_seconds(mine, theirs),
        ),
        speed(
            f"{what}, against Spark's partitionBy",
            mine,
            sparks,
            at_least=12,
            detail=_seconds(mine, sparks),
        ),
        Result(f"{len(KEYS):,} swaps, of the time of the load", share, "%", "< 5", share < 5, timed),
    ], warehouse


def _warm_up(raw: Raw, run_id: RunId) -> None:
    with Warehouse(raw) as warehouse:
        warehouse.accept(KEYS[:WARM_UP], run_id)
        warehouse.load()
        spark = raw.spark
        for _ in range(3):
            _aggregate(warehouse.book.read(QUERY, spark=spark, scan="source"))
            _aggregate(spark.read.parquet(*warehouse.files[:100]))
            warehouse.book.table(QUERY)


def _reading(spark: SparkSession, warehouse: Warehouse) -> list[Result]:
    """Scan all, by turns."""
    book, files = warehouse.book, warehouse.files
    named, whole, peer = medians(
        ROUNDS,
        lambda: _aggregate(book.read(QUERY, spark=spark, columns=AGGREGATED)),
        lambda: _aggregate(book.read(QUERY, spark=spark)),
        lambda: _aggregate(spark.read.parquet(*files)),
    )
    what = f"scan and aggregate {len(files):,} artifacts from Spark, against spark.read.parquet"
    tables = medians(
        2 * ROUNDS,
        lambda: book.table(QUERY),
        lambda: ds.dataset(files, format="parquet").to_table(),
    )
    return [
        speed(what, whole, peer, at_least=6, detail=_seconds(whole, peer)),
        speed(f"{what}, columns named", named, peer, at_least=6, detail=_seconds(named, peer)),
        duration("book.table, against a pyarrow dataset", *tables, at_most=1.5, detail=_seconds(*tables)),
    ]


def _aggregate(frame: DataFrame) -> None:
    assert frame.agg(F.count("*"), *map(F.max, AGGREGATED)).collect()[0][0] > 0


def _reloading(warehouse: Warehouse) -> list[Result]:
    passed = medians(ROUNDS, warehouse.load)[0]
    return [Result("load when nothing changed", passed, "s", "< 1", passed < 1)]


def _replacing(raw: Raw, first: RunId) -> list[Result]:
    """Replace partitions of a table by another run of them: one by one, and all at once."""
    keys = [key for key in KEYS if key.logical_date < FIRST_DAY + timedelta(SIDE_BY_SIDE // CUSTOMERS)]
    replaced = demo_keys(REPLACED_CUSTOMERS, REPLACED_DAYS)
    second, *others = (raw.extract(replaced, restatement=number) for number in range(1, 2 + ROUNDS))
    with Warehouse(raw) as warehouse:
        warehouse.accept(keys, first)
        warehouse.load()
        everything = _lake_rows(warehouse.book.table(QUERY))
        warehouse.accept(replaced, second)
        one_by_one = seconds_of(lambda: [_load_one(warehouse, key) for key in replaced])
        new = _lake_rows(warehouse.book.table(QUERY, runs=[second]))
        at_once = median(_replace_at_once(warehouse, replaced, run_id) for run_id in others)
    parts = [_rows_of(new, key) for key in replaced]
    results = []
    for name, peer in (("deltalake", DeltaTable), ("pyiceberg", IcebergTable)):
        with raw.scratch() as folder:
            table = peer(folder, everything)
            theirs = seconds_of(partial(list, map(table.replace, parts)))
            batch = medians(ROUNDS, partial(table.replace, new))[0]
        what = f"replace {len(replaced)} of {len(keys):,} partitions {{}}, against {name}"
        results += [
            noted(what.format("one by one"), theirs / one_by_one, "x speed", _seconds(one_by_one, theirs)),
            speed(
                what.format("at once"),
                at_once,
                batch,
                at_least=0.5,
                detail=_seconds(at_once, batch),
                why=_ON_SPARK,
            ),
        ]
    return results


def _replace_at_once(warehouse: Warehouse, keys: Sequence[PartitionKey], run_id: RunId) -> float:
    warehouse.accept(keys, run_id)
    return seconds_of(warehouse.load)


def _load_one(warehouse: Warehouse, key: PartitionKey) -> int:
    return warehouse.load(Selection(keys=[key]))


def _lake_rows(rows: pa.Table) -> pa.Table:
    """Return rows with days as text, by which every lake can partition."""
    at = rows.column_names.index("logical_date")
    return rows.set_column(at, "logical_date", rows["logical_date"].cast(pa.string()))


def _rows_of(rows: pa.Table, key: PartitionKey) -> pa.Table:
    return rows.filter(
        (ds.field("customer_id") == key.customer_id) & (ds.field("logical_date") == str(key.logical_date))
    )


def _seconds(ours: float, peer: float) -> str:
    return f"{ours:.2f} s and {peer:.2f} s"
