"""Lines of partition status by the page, as an Arrow table, and as `partition_status.parquet` (R-PST-7)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

from sealbook.errors import InvalidInput
from sealbook.ledger.status.reader import StatusReader
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.scope import Scope
from sealbook.model.selection import Selection
from sealbook.model.status_line import ALL, StatusFilter, StatusLine

FILE_NAME = "partition_status.parquet"

_PAGE = 5_000
_TIME = pa.timestamp("us", tz="UTC")

EXPORTED = pa.schema(
    [
        pa.field("tenant_id", pa.string(), nullable=False),
        pa.field("workspace_id", pa.string(), nullable=False),
        pa.field("asset_key", pa.string(), nullable=False),
        pa.field("partition_key", pa.string(), nullable=False),
        ("last_materialization_run_id", pa.string()),
        ("last_materialization_at", _TIME),
        ("last_materialization_code_version", pa.string()),
        ("last_attempt_run_id", pa.string()),
        ("last_attempt_at", _TIME),
        ("last_attempt_outcome", pa.string()),
        ("stale_since", _TIME),
        ("stale_reason_code", pa.string()),
        pa.field("partition_values", pa.map_(pa.string(), pa.string()), nullable=False),
        ("row_version", pa.string()),
    ]
)
"""The columns of ADR-026. A partition that nobody ever touched has no `row_version`."""

TABLE = pa.schema(
    [
        *EXPORTED,
        pa.field("display", pa.string(), nullable=False),
        pa.field("availability", pa.string(), nullable=False),
        pa.field("stale_reasons", pa.list_(pa.string()), nullable=False),
        pa.field("expected", pa.bool_(), nullable=False),
        pa.field("due", pa.bool_(), nullable=False),
        pa.field("provisional", pa.bool_(), nullable=False),
        pa.field("settled", pa.bool_(), nullable=False),
        pa.field("late", pa.bool_(), nullable=False),
        pa.field("attempted", pa.bool_(), nullable=False),
    ]
)
"""The same, and what follows from them and from what is expected."""

_AS_IS = tuple(name for name in TABLE.names if name in StatusLine._fields)


def iter_lines(
    reader: StatusReader,
    expectations: Expectations,
    selection: Selection,
    where: StatusFilter = ALL,
    *,
    after: PartitionKey | None = None,
) -> Iterator[StatusLine]:
    """Yield lines in the order of keys, asked for by the page: there may be any number of them."""
    while page := reader.lines(expectations, selection, where=where, after=after, limit=_PAGE):
        yield from page
        after = page[-1].key


def status_table(lines: Iterable[StatusLine], scope: Scope, schema: pa.Schema = TABLE) -> pa.Table:
    """Return lines as a table."""
    remaining = iter(lines)
    pages = []
    while page := list(islice(remaining, _PAGE)):
        pages.append(_batch(page, scope, schema))
    return pa.Table.from_batches(pages, schema)


def spark_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return a status table as a DataFrame; days and times are those of Spark's session."""
    return spark.createDataFrame(table)


def export(lines: Iterable[StatusLine], scope: Scope, target: Path) -> tuple[Path, int]:
    """Write lines to a file, or to `partition_status.parquet` in a folder; return where, and how many.

    What is there is replaced at once when all is written.
    """
    file = target / FILE_NAME if target.is_dir() else target
    if not file.parent.is_dir():
        raise InvalidInput(
            f"there is no folder {file.parent}",
            field="path",
            value=target,
            remedy="Make it, or name another.",
        )
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    count = 0
    remaining = iter(lines)
    try:
        with pq.ParquetWriter(draft, EXPORTED, compression="zstd") as writer:
            while page := list(islice(remaining, _PAGE)):
                writer.write_batch(_batch(page, scope, EXPORTED))
                count += len(page)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return file, count


def _batch(lines: list[StatusLine], scope: Scope, schema: pa.Schema) -> pa.RecordBatch:
    values = [
        [("customer_id", line.key.customer_id), ("logical_date", line.key.logical_date.isoformat())]
        for line in lines
    ]
    columns: dict[str, list[object]] = {
        "tenant_id": [scope.tenant_id] * len(lines),
        "workspace_id": [scope.workspace_id] * len(lines),
        "asset_key": [f"{line.key.source}/{line.key.query_name}" for line in lines],
        "partition_key": [",".join(f"{name}={value}" for name, value in each) for each in values],
        "partition_values": list(values),
        **{name: [getattr(line, name) for line in lines] for name in _AS_IS},
    }
    return pa.record_batch([pa.array(columns[each.name], each.type) for each in schema], schema=schema)
