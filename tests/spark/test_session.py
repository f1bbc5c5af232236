"""The session as its workers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_workers_import_the_installed_pyspark(spark: SparkSession) -> None:
    imported = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("pyspark").__file__)
    assert imported.collect() == [pyspark.__file__]
