"""A rehearsal of what the stages do on Spark, for Java to load the classes that they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from sealbook.config import SparkSettings
from sealbook.spark.raw_rows import raw_rows
from sealbook.spark.session import JAVA_OPTIONS, close_session, spark_session
from sealbook.spark.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.rows.units import Unit

_SCHEMA = T.StructType(
    [
        T.StructField("name", T.StringType()),
        T.StructField("count", T.LongType()),
        T.StructField("share", T.DoubleType()),
        T.StructField("day", T.DateType()),
        T.StructField("at", T.TimestampType()),
        T.StructField("payload", T.BinaryType()),
    ]
)


def rehearse(configuration: Mapping[str, str], java_options: Sequence[str]) -> None:
    """Start Spark with further options for Java, have it do a little of everything, and end it."""
    options = " ".join((configuration.get(JAVA_OPTIONS, ""), *java_options))
    settings = SparkSettings("local[1]", {**configuration, JAVA_OPTIONS: options}, class_archive=False)
    spark = spark_session(settings)
    with TemporaryDirectory() as folder:
        _rehearse_tasks(spark)
        _rehearse_rules(spark)
        _rehearse_reads(spark, Path(folder))
    close_session(spark)


def _rehearse_tasks(spark: SparkSession) -> None:
    for _ in run_tasks(spark, [1], str):
        pass


def _rehearse_rules(spark: SparkSession) -> None:
    counted = spark.sparkContext.accumulator(0)
    rows = raw_rows(spark, _Sample(), [[]], _SCHEMA)
    repeated = "row_number() over (partition by name, day order by count) > 1 as is_repeated"
    violations = rows.selectExpr("name", "not coalesce(count > 0, false) as is_wrong", repeated)
    wanted = rows.selectExpr("name", "not coalesce(share < 1, false) as is_wrong", "false as is_repeated")
    both = violations.unionAll(wanted).where("is_wrong or is_repeated")
    both.rdd.foreachPartition(lambda some: counted.add(len(list(some))))


def _rehearse_reads(spark: SparkSession, folder: Path) -> None:
    pq.write_table(pa.Table.from_batches(_Sample().read([])), folder / "part.parquet")
    read = spark.read.parquet(str(folder))
    read.where("day >= '2026-01-01'").groupBy("name").sum("count").collect()


class _Sample:
    """A reader that finds a few rows in nothing."""

    def read(self, units: Sequence[Unit], attempt: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield them."""
        del units, attempt
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        columns = {
            "name": pa.array(["a", "b", None]),
            "count": pa.array([1, None, 0], pa.int64()),
            "share": pa.array([0.5, None, 1.5]),
            "day": pa.array([date(2026, 1, 1)] * 3),
            "at": pa.array([moment] * 3, pa.timestamp("us", tz="UTC")),
            "payload": pa.array([b"", None, b"x"]),
        }
        yield pa.RecordBatch.from_pydict(columns)
