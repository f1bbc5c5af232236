"""The extraction job on Spark."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from sealbook.extract.extractor import Extractor
from sealbook.extract.planning import spread
from sealbook.extract.results import Extracted
from sealbook.model import PartitionKey
from sealbook.spark.tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Enough to keep a task's threads busy, and few enough that progress shows and a kill loses little.
_KEYS_PER_TASK = 250

RESULT_SCHEMA = (
    "source string, customer_id string, query_name string, logical_date date, run_id string, ending string,"
    " record_count bigint, payload_bytes bigint, seconds double, error_class string, error_message string"
)


def extract(
    spark: SparkSession, extractor: Extractor, keys: Sequence[PartitionKey]
) -> Generator[list[Extracted], None, None]:
    """Extract partitions on Spark, and yield results as tasks end. Run it again to do what is left.

    The extractor's limits are for all tasks together. Closing the iterator stops the job; what was sealed by
    then stays, and nothing is half sealed.
    """
    at_once = spark.sparkContext.defaultParallelism
    tasks = spread(keys, at_once * ceil(len(keys) / (at_once * _KEYS_PER_TASK)))
    return run_tasks(spark, tasks, replace(extractor, processes=min(at_once, len(tasks) or 1)))


def results_frame(spark: SparkSession, results: Iterable[Extracted]) -> DataFrame:
    """Return results as a DataFrame, one row for each partition."""
    rows = [
        (
            result.key.source,
            result.key.customer_id,
            result.key.query_name,
            result.key.logical_date,
            str(result.run_id),
            result.ending.value,
            result.record_count,
            result.payload_bytes,
            result.seconds,
            result.error_class and result.error_class.value,
            result.error_message,
        )
        for result in results
    ]
    return spark.createDataFrame(rows, RESULT_SCHEMA)
