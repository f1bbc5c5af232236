"""The one Spark session of a test process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from sealbook.config import SparkSettings
from sealbook.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two local cores, shared by all tests that ask."""
    session = spark_session(SparkSettings(master="local[2]", config={"spark.driver.memory": "1g"}))
    yield session
    session.stop()
