"""The extraction job on Spark."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from sealbook.extract.extractor import Extractor
from sealbook.extract.plan import deal
from sealbook.extract.ranges import Range
from sealbook.extract.results import Extracted
from sealbook.spark.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS_PER_TASK = 250
"""Enough to keep a task's threads busy, and few enough that progress shows."""

RESULT_SCHEMA = (
    "source string, customer_id string, query_name string, logical_date date, run_id string, ending string,"
    " record_count bigint, payload_bytes bigint, seconds double, error_class string, error_message string,"
    " retry_after double, quota_scope string"
)


def extract(
    spark: SparkSession,
    extractor: Extractor,
    ranges: Sequence[Range],
    *,
    keys_per_task: int = KEYS_PER_TASK,
) -> Generator[list[Extracted], None, None]:
    """Extract ranges on Spark, and yield results as tasks end. Run it again to do what is left.

    The extractor's limits are for all tasks together. Closing the iterator stops the job; what was sealed by
    then stays, and nothing is half sealed.
    """
    at_once = spark.sparkContext.defaultParallelism
    keys = sum(map(len, ranges))
    tasks = deal(ranges, at_once * ceil(keys / (at_once * keys_per_task)))
    return run_tasks(spark, tasks, replace(extractor, processes=min(at_once, len(tasks) or 1)))


def results_frame(spark: SparkSession, results: Iterable[Extracted]) -> DataFrame:
    """Return results as a DataFrame, one row for each partition."""
    return spark.createDataFrame([tuple(result.row().values()) for result in results], RESULT_SCHEMA)
