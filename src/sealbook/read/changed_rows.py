"""The rows of partitions that changed, each with what became of its partition; without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from sealbook.model.column_types import ColumnType
from sealbook.model.publication import Published
from sealbook.model.published_changes import PublishedChange
from sealbook.read.schema import KEY_TYPES, Schema, arrow_schema
from sealbook.read.table import BlockReader, read_in_task, repeat_for_rows
from sealbook.rows.types import arrow_type

CHANGE_COLUMNS: Schema = {
    "_change": ColumnType.STRING,
    "_from_run_id": ColumnType.STRING,
    "_version": ColumnType.BIGINT,
    "_at": ColumnType.TIMESTAMP,
    "_record_count": ColumnType.BIGINT,
}
"""What is said of the change, in each row. No contract has a column whose name begins like this."""


class ChangedPartition(NamedTuple):
    """A change, and the artifact that has what is read of the partition now; None if that is nothing."""

    change: PublishedChange
    artifact: Published | None

    @property
    def record_count(self) -> int:
        """How many rows the partition has now."""
        return 0 if self.artifact is None else self.artifact.record_count


def rows_of_changes(reader: BlockReader, changed: Sequence[ChangedPartition]) -> Iterator[pa.Table]:
    """Read the rows of partitions, all of which have some, in the columns of a reader and of changes."""
    counts = [each.record_count for each in changed]
    said = pa.table(
        {
            name: repeat_for_rows([_said(each)[name] for each in changed], counts, column_type)
            for name, column_type in CHANGE_COLUMNS.items()
        }
    )
    start = 0
    for table in read_in_task(reader, [each.artifact for each in changed if each.artifact is not None]):
        part = said.slice(start, table.num_rows)
        start += table.num_rows
        for name in CHANGE_COLUMNS:
            table = table.append_column(name, part.column(name))
        yield table


def markers(schema: Schema, changed: Sequence[ChangedPartition]) -> pa.Table:
    """Say of each of some partitions, in one row with no values of its own, that it has no rows any more."""
    said = [{**_key(each), **_said(each)} for each in changed]
    columns = {**schema, **CHANGE_COLUMNS}
    arrays = [
        pa.array([each.get(name) for each in said], arrow_type(column_type))
        for name, column_type in columns.items()
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def _key(changed: ChangedPartition) -> dict[str, object]:
    artifact = changed.artifact
    if artifact is not None:
        return {name: getattr(artifact, name) for name in KEY_TYPES}
    change = changed.change
    return {
        "source": change.source,
        "customer_id": change.customer_id,
        "logical_date": change.logical_date,
    }


def _said(changed: ChangedPartition) -> dict[str, object]:
    change = changed.change
    return {
        "_change": change.kind.value,
        "_from_run_id": change.from_run_id,
        "_version": change.version,
        "_at": change.at,
        "_record_count": changed.record_count,
    }
