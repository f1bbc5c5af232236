"""What the warehouse is compared with: the same rows, written and replaced by others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from sealbook.model.contract import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITIONED_BY = ("customer_id", "query_name", "logical_date", "run_id")
_DUCKDB_TYPES = {"string": "VARCHAR", "bigint": "BIGINT", "int": "INTEGER", "float": "FLOAT"}


def duckdb_copy(payloads: str, columns: Sequence[Column], to: Path) -> None:
    """Have DuckDB read all payloads, and write one Parquet file for each partition."""
    types = {column.name: _DUCKDB_TYPES.get(column.type, str(column.type).upper()) for column in columns}
    # A connection of its own, as of a new process; it has as many threads as there are cores.
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            f"COPY (SELECT * FROM read_json('{payloads}', format='newline_delimited', hive_partitioning=true,"
            f" hive_types_autocast=false, columns={types!r}))"
            f" TO '{to}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY ({', '.join(_PARTITIONED_BY)}))"
        )


def spark_partition_by(
    spark: SparkSession, paths: Sequence[str], columns: Sequence[Column], to: Path
) -> None:
    """Have Spark read all payloads, and write them partitioned, in the usual way."""
    schema = ", ".join(f"{column.name} {column.type}" for column in columns)
    rows = spark.read.schema(schema).json(list(paths)).withColumn("path", F.col("_metadata.file_path"))
    for name in _PARTITIONED_BY:
        rows = rows.withColumn(name, F.regexp_extract("path", f"{name}=([^/]+)", 1))
    rows = rows.drop("path").repartition(8, *_PARTITIONED_BY[:3]).sortWithinPartitions(*_PARTITIONED_BY[:3])
    rows.write.partitionBy(*_PARTITIONED_BY).parquet(str(to))


class DeltaTable:
    """A Delta table, partitioned by customer and day."""

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        self._folder = str(folder)
        self._write: Any = write_deltalake
        self._write(self._folder, rows, partition_by=["customer_id", "logical_date"])

    def replace(self, rows: pa.Table) -> None:
        """Replace the partitions that rows are of, which are all customers on all days of them."""
        customers = ", ".join(f"'{each}'" for each in pc.unique(rows["customer_id"]).to_pylist())
        days = ", ".join(f"'{each}'" for each in pc.unique(rows["logical_date"]).to_pylist())
        predicate = f"customer_id IN ({customers}) AND logical_date IN ({days})"
        self._write(self._folder, rows, mode="overwrite", predicate=predicate)


class IcebergTable:
    """An Iceberg table in a catalogue on SQLite, partitioned by customer and day."""

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.transforms import IdentityTransform

        folder.mkdir()
        catalogue = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalogue.db", warehouse=folder.as_uri())
        catalogue.create_namespace("bench")
        self._table = catalogue.create_table("bench.campaign_daily", rows.schema)
        with self._table.update_spec() as spec:
            for name in ("customer_id", "logical_date"):
                spec.add_field(name, IdentityTransform(), name)
        self._table.append(rows)

    def replace(self, rows: pa.Table) -> None:
        """Replace the partitions that rows are of."""
        self._table.dynamic_partition_overwrite(rows)


def forget(folder: Path) -> None:
    """Delete what a round has written, and have it off the disk's mind before the next."""
    shutil.rmtree(folder, ignore_errors=True)
    os.sync()
