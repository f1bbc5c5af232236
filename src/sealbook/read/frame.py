"""A planned read as a Spark DataFrame, by the quicker of two scans that give the same rows."""

from __future__ import annotations

import atexit
import pickle
import shutil
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache, partial, reduce
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from sealbook.errors import InvalidInput
from sealbook.model.contract import Contract
from sealbook.model.publication import Published
from sealbook.read.changes_source import CHANGES_FORMAT, ChangesSource
from sealbook.read.plan import ReadPlan
from sealbook.read.source import (
    FORMAT,
    PLAN_OPTION,
    PlannedRead,
    PublishedSource,
    spark_schema,
)
from sealbook.spark.connect import is_connect
from sealbook.warehouse.checking import check_artifact
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.part_files import PartFiles

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_FEW_FILES = 64
_LARGE_BYTES = 4 * 1024 * 1024
_LOCATION = "__location"
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class Scan(StrEnum):
    """How Spark gets at artifacts: by what suits their number and size, or by one of the two."""

    AUTO = "auto"
    SOURCE = "source"
    PARQUET = "parquet"


def register(spark: SparkSession) -> None:
    """Make the formats `sealbook` and `sealbook_changes` known to a session."""
    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(PublishedSource)
    spark.dataSource.register(ChangesSource)


def stream_frame(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return a streaming DataFrame of changes, by the options of `sealbook_changes`."""
    register(spark)
    return spark.readStream.format(CHANGES_FORMAT).options(**options).load()


def read_frame(spark: SparkSession, warehouse: str, plan: ReadPlan, scan: str = Scan.AUTO) -> DataFrame:
    """Return a DataFrame of a plan. Every action on it sees the runs of the plan, and no others.

    Through Spark Connect the scan is Spark's own, unless told: the server may not have Sealbook.
    """
    if scan not in list(Scan):
        raise InvalidInput.of("scan", scan, f"one of {', '.join(Scan)}")
    register(spark)
    if not plan.partitions:
        return spark.createDataFrame([], spark_schema(plan.schema))
    if scan == Scan.AUTO:
        scan = Scan.PARQUET if is_connect(spark) else quicker_scan(PartFiles(warehouse), plan.partitions)
    if scan == Scan.PARQUET:
        return _parquet_frame(spark, warehouse, plan)
    read = PlannedRead(warehouse, plan)
    handed_over = read.to_text() if is_connect(spark) else str(_saved(read))
    reader = spark.read.format(FORMAT).schema(spark_schema(plan.schema))
    return reader.option(PLAN_OPTION, handed_over).load()


def quicker_scan(warehouse: PartFiles, partitions: Sequence[Published]) -> Scan:
    """Choose a scan: Spark's own takes milliseconds for each file before it begins, and is then the quicker.

    On an object store it needs drivers that Spark does not bring along, so there it is only used when told.
    """
    files = sum(each.parts for each in partitions)
    mean = sum(each.bytes for each in partitions) / files
    suits = warehouse.folder is not None and (files <= _FEW_FILES or mean >= _LARGE_BYTES)
    return Scan.PARQUET if suits else Scan.SOURCE


def _parquet_frame(spark: SparkSession, warehouse: str, plan: ReadPlan) -> DataFrame:
    """Scan each schema_version by itself, as the table that it is, and put them together.

    Spark would read whatever it finds, so the footers are looked at here, of files that are few or large.
    """
    files = PartFiles(warehouse)
    for _ in files.each(partial(check_artifact, files), plan.partitions, lambda _: 0):
        pass
    frames = [
        _version_frame(spark, warehouse, plan, contract, partitions)
        for contract in plan.contracts
        if (
            partitions := [each for each in plan.partitions if each.schema_version == contract.schema_version]
        )
    ]
    return reduce(lambda one, other: one.unionByName(other), frames)


def _version_frame(
    spark: SparkSession,
    warehouse: str,
    plan: ReadPlan,
    contract: Contract,
    partitions: Sequence[Published],
) -> DataFrame:
    root = warehouse.replace("s3://", "s3a://", 1)
    paths = [f"{root}/{path}" for each in partitions for path in part_paths(each)]
    own = {column.name: column.type for column in contract.columns}
    rows = spark.read.schema(spark_schema(own)).option("recursiveFileLookup", "true").parquet(*paths)
    # Before the location Spark spells a path in its own way; the location has nothing to be spelt otherwise.
    depth = partitions[0].location.count("/") + 1
    directory = F.regexp_replace("_metadata.file_path", "/[^/]*$", "")
    rows = rows.withColumn(_LOCATION, F.substring_index(directory, "/", -depth))
    keys = spark.createDataFrame(
        [(each.location, *(getattr(each, name) for name in plan.added)) for each in partitions],
        f"{_LOCATION} string, " + ", ".join(f"{name} {each}" for name, each in plan.added.items()),
    )

    called = plan.own_names.get(contract.schema_version, {})

    def column(name: str) -> Column:
        wanted = spark_schema(plan.schema)[name].dataType
        its_name = called.get(name, name)
        known = its_name in own or name in plan.added
        return (F.col(its_name) if known else F.lit(None)).cast(wanted).alias(name)

    return rows.join(F.broadcast(keys), on=_LOCATION, how="inner").select(*map(column, plan.schema))


def _saved(read: PlannedRead) -> Path:
    """Write a plan to a file that lasts as long as this process; one that was saved before stays."""
    content = pickle.dumps(read)
    file = _folder() / sha256(content).hexdigest()
    if not file.exists():
        draft = file.with_suffix(f".{uuid4().hex}")  # another thread may be saving the same plan
        draft.write_bytes(content)
        draft.replace(file)
    return file


@cache
def _folder() -> Path:
    # A DataFrame may be used until the process ends, and only Spark knows whether it still is.
    folder = Path(mkdtemp(prefix="sealbook-reads-"))  # which only this user can read
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
