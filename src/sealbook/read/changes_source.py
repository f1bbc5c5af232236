"""`sealbook_changes`: a Spark stream of what changes of what is published, with or without the rows.

Spark asks in a Python process of the driver, which lives as long as the query, up to where a batch goes,
keeps that in the checkpoint, and then asks what the batch has. One that is asked for again is the same, so a
sink that takes each batch once has each change once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - its usual name
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from sealbook.errors import InvalidInput, NotFound
from sealbook.model.column_types import ColumnType
from sealbook.model.published_changes import PublishedChange
from sealbook.model.selection import Selection
from sealbook.read.changed_rows import CHANGE_COLUMNS, ChangedPartition, markers, rows_of_changes
from sealbook.read.following import Following, StreamPosition
from sealbook.read.options import BookOptions, remedies_told
from sealbook.read.plan import ReadPlan, in_blocks
from sealbook.read.run_rows import RunPlace
from sealbook.read.schema import KEY_TYPES, Schema, arrow_schema, contracts_of, reconcile
from sealbook.read.source import TASK_BYTES, check_holds, column_types, spark_schema
from sealbook.read.table import BlockReader
from sealbook.warehouse.part_files import PartFiles

if TYPE_CHECKING:
    from sealbook.ledger import LedgerReader

CHANGES_FORMAT = "sealbook_changes"

CHANGES: Schema = {
    "source": ColumnType.STRING,
    "customer_id": ColumnType.STRING,
    "query_name": ColumnType.STRING,
    "logical_date": ColumnType.DATE,
    "kind": ColumnType.STRING,
    "from_run_id": ColumnType.STRING,
    "to_run_id": ColumnType.STRING,
    "version": ColumnType.BIGINT,
    "at": ColumnType.TIMESTAMP,
}
"""The columns of changes without rows: those of `book.changes`."""

_CHANGES_PER_TASK = 10_000
_MOST = "maxPartitionsPerBatch"


@dataclass(frozen=True, slots=True)
class _Request:
    """What the options ask for."""

    asked: BookOptions
    rows: bool
    after: str | None
    most: int | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Request:
        asked = BookOptions.of(options, "rows", "after", _MOST)
        return cls(asked, asked.flag("rows"), asked.further.get("after"), asked.number(_MOST))


class ChangesSource(DataSource):
    """The data source.

    Options: `book`, `query`, `source`, `customers`, `since`, `until`, `rows`, `after` and
    `maxPartitionsPerBatch`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return CHANGES_FORMAT

    def schema(self) -> T.StructType:
        """Return the columns of changes, or those of a read and of changes."""
        from sealbook.ledger.reader import open_ledger_reader

        request = _Request.of(self.options)
        if not request.rows:
            return spark_schema(CHANGES)
        settings, query = request.asked.find()
        with open_ledger_reader(settings.ledger) as ledger:
            return spark_schema(reconcile(ledger.contracts.as_recorded(query)) | CHANGE_COLUMNS)

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of the columns of a schema."""
        return _ChangesReader(_Request.of(self.options), column_types(schema))


class _Task(InputPartition):
    """What a task gives: changes themselves, markers, or rows if there is a reader for them."""

    def __init__(self, found: Sequence[Any], reader: BlockReader | None = None) -> None:
        super().__init__((found, reader))


class _ChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, request: _Request, schema: Schema) -> None:
        self._request = request
        self._schema = schema
        self._end: str | None = None
        if not request.rows:
            _check_columns(schema)

    def initialOffset(self) -> dict[str, str | int]:  # noqa: N802 - Spark's name
        """Return where a stream begins that has no checkpoint."""
        with remedies_told():
            return self._following.start(self._request.after).to_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return how much a batch has at most."""
        # Spark knows no partitions of a book; each has one artifact, as a rule of one file.
        most = self._request.most
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Go no further than to the present."""
        with remedies_told():
            self._end = self._following.now()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, str | int], limit: ReadLimit
    ) -> dict[str, str | int]:
        """Return up to where the next batch goes; where it starts if nothing has changed."""
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        with remedies_told():
            return self._following.next(StreamPosition.of_offset(start), most, self._end).to_offset()

    def partitions(self, start: dict[str, str | int], end: dict[str, str | int]) -> Sequence[InputPartition]:
        """Divide a batch into tasks; runs on the driver."""
        with remedies_told():
            found = self._following.between(StreamPosition.of_offset(start), StreamPosition.of_offset(end))
            if self._request.rows:
                return list(self._row_tasks(found))
            starts = range(0, len(found), _CHANGES_PER_TASK)
            return [_Task(found[first : first + _CHANGES_PER_TASK]) for first in starts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what a task was given."""
        found, reader = partition.value
        with remedies_told():
            if not self._request.rows:
                tables = iter([_table_of(found)])
            elif reader is None:
                tables = iter([markers(_read_columns(self._schema), found)])
            else:
                tables = rows_of_changes(reader, found)
            for table in tables:
                yield from table.select(list(self._schema)).to_batches()

    def stop(self) -> None:
        """Close the ledger."""
        opened = self.__dict__.pop("_ledger", None)
        if opened is not None:
            opened.close()

    @cached_property
    def _ledger(self) -> LedgerReader:
        # It stays open: Spark asks up to a hundred times a second whether something has changed.
        from sealbook.ledger.reader import open_ledger_reader

        settings, _ = self._request.asked.find()
        return open_ledger_reader(settings.ledger)

    @cached_property
    def _following(self) -> Following:
        _, query = self._request.asked.find()
        chosen = replace(self._request.asked.selection, source=(query.source,), queries=(query.name,))
        return Following(self._ledger.pointers, chosen, net=self._request.rows)

    def _row_tasks(self, changes: Sequence[PublishedChange]) -> Iterator[_Task]:
        settings, configured = self._request.asked.find()  # again: it may have got another version since
        query = self._ledger.contracts.as_recorded(configured)
        changed = self._with_artifacts(changes)
        filled = {each.change.key: each for each in changed if each.record_count}
        artifacts = tuple(each.artifact for each in filled.values() if each.artifact is not None)
        contracts = contracts_of(query, {each.schema_version for each in artifacts})
        columns = _read_columns(self._schema)
        plan = ReadPlan(query, tuple(contracts), columns, artifacts)
        check_holds(columns, plan)
        reader = BlockReader(PartFiles(settings.warehouse), columns, plan.own_names)
        for block in in_blocks(artifacts, TASK_BYTES):
            yield _Task([filled[each.key] for each in block], reader)
        empty = [each for each in changed if not each.record_count]
        if empty:
            yield _Task(empty)

    def _with_artifacts(self, changes: Sequence[PublishedChange]) -> list[ChangedPartition]:
        """Find what lies where; NotFound if a clean-up has taken what a batch had."""
        keys = [each.key for each in changes if each.to_run_id is not None]
        stored = {
            (each.key, each.record.run_id): each
            for each in (self._ledger.pointers.stored_artifacts(Selection(keys=keys)) if keys else ())
        }
        found = []
        for each in changes:
            artifact = None
            if each.to_run_id is not None:
                place = RunPlace.of(each.key, each.to_run_id, stored.get((each.key, each.to_run_id)))
                artifact = place.artifact
                if artifact is None:
                    raise NotFound(
                        f"the rows of run {each.to_run_id} of {each.key} were cleaned up since",
                        remedy="The stream was away for too long: begin anew, with another checkpoint.",
                    )
            found.append(ChangedPartition(each, artifact))
        return found


def _read_columns(schema: Schema) -> Schema:
    """Return the columns that are read: those of the key always, so that rows can be counted."""
    return {**KEY_TYPES, **{name: each for name, each in schema.items() if name not in CHANGE_COLUMNS}}


def _table_of(changes: Sequence[PublishedChange]) -> pa.Table:
    return pa.Table.from_pylist([each._asdict() for each in changes], schema=arrow_schema(CHANGES))


def _check_columns(schema: Schema) -> None:
    for name, column_type in schema.items():
        if CHANGES.get(name) != column_type:
            known = ", ".join(f"{each} {is_a}" for each, is_a in CHANGES.items())
            raise InvalidInput.of("column", f"{name} {column_type}", f"one of {known}")
