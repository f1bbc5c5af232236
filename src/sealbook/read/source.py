"""`sealbook`: a Spark data source over what is published.

Spark asks for the schema and for the partitions in a Python process of the driver. There a read that
`Book.read` has planned is found as a file. One that `spark.read.format("sealbook")` asks for is planned from
the ledger, whose URL comes from the configuration: nothing secret goes through options, which show in query
plans and logs.
"""

from __future__ import annotations

import pickle
from base64 import b85decode, b85encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import compress, decompress

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - its usual name
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from sealbook.errors import InvalidInput, Irreconcilable
from sealbook.model.column_types import KINDS, ColumnType
from sealbook.model.publication import Published
from sealbook.model.selection import Selection
from sealbook.model.widening import common_type
from sealbook.read.options import BookOptions, remedies_told
from sealbook.read.plan import EVERYTHING, ReadPlan, in_blocks, plan_read
from sealbook.read.pushdown import PushedFilters
from sealbook.read.schema import KEY_TYPES, Schema
from sealbook.read.table import BlockReader, read_in_task
from sealbook.spark.types import spark_type
from sealbook.warehouse.part_files import PartFiles

FORMAT = "sealbook"
PLAN_OPTION = "plan"
_INLINE = "inline:"

TASK_BYTES = 32 * 1024 * 1024
"""A task reads about so much; a small file counts as more than its size, for the opening."""


def spark_schema(schema: Schema) -> T.StructType:
    """Return a schema in Spark."""
    return T.StructType([T.StructField(name, spark_type(each)) for name, each in schema.items()])


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A read that is planned, and where its artifacts are."""

    warehouse: str
    plan: ReadPlan

    def to_text(self) -> str:
        """Return it as an option: for a server that does not see the files of this machine."""
        return _INLINE + b85encode(compress(pickle.dumps(self))).decode()

    @classmethod
    def of_option(cls, handed_over: str) -> PlannedRead:
        """Return what was handed over as text, or by the name of a file."""
        if handed_over.startswith(_INLINE):
            content = decompress(b85decode(handed_over.removeprefix(_INLINE)))
        else:
            content = Path(handed_over).read_bytes()
        read: PlannedRead = pickle.loads(content)
        return read


@dataclass(frozen=True, slots=True)
class _Request:
    """What the options ask for."""

    asked: BookOptions
    strict: bool
    cut: str | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Request:
        asked = BookOptions.of(options, "strict", "cut")
        return cls(asked, asked.flag("strict"), asked.further.get("cut"))

    def planned(self, selection: Selection, columns: Iterable[str] | None = None) -> PlannedRead:
        """Ask the ledger, in one statement, at this moment."""
        from sealbook.ledger.reader import open_ledger_reader  # not for tasks, which import this module too

        settings, query = self.asked.find()
        with open_ledger_reader(settings.ledger) as ledger:
            plan = plan_read(
                ledger.pointers,
                ledger.contracts.as_recorded(query),
                selection,
                columns=columns,
                strict=self.strict,
                cut=self.cut,
            )
        return PlannedRead(settings.warehouse, plan)


class PublishedSource(DataSource):
    """The data source. Options: `book`, `query`, `source`, `customers`, `since`, `until`, `strict`, `cut`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> T.StructType:
        """Return the columns of all versions that are published now."""
        request = _Request.of(self.options)
        return spark_schema(request.planned(request.asked.selection).plan.schema)

    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Return the reader of the columns of a schema."""
        return _PublishedReader(dict(self.options), schema)


class _Bin(InputPartition):
    """What a task reads. Spark has pickled the reader before it asks for these, so all is said here."""

    def __init__(self, reader: BlockReader, partitions: Sequence[Published]) -> None:
        super().__init__((reader, partitions))


class _PublishedReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str], schema: T.StructType) -> None:
        self._options = options
        self._schema = column_types(schema)
        # A read that is planned already says what it asks for by its partitions.
        asked = EVERYTHING if PLAN_OPTION in options else _Request.of(options).asked.selection
        self._filters = PushedFilters(asked)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take filters on the key over into the question to the ledger."""
        return list(self._filters.push(filters))

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the read, or take up the plan that was made, and divide it into tasks; runs on the driver."""
        if PLAN_OPTION in self._options:
            read = PlannedRead.of_option(self._options[PLAN_OPTION])
            chosen = self._filters.selection
            partitions = [
                each for each in read.plan.partitions if chosen.matches(each) and chosen.has_run(each.run_id)
            ]
        else:
            # The columns are settled, so that those that nobody asks for need not be reconciled.
            read = _Request.of(self._options).planned(self._filters.selection, KEY_TYPES)
            check_holds(self._schema, read.plan)
            partitions = list(read.plan.partitions)
        reader = BlockReader(PartFiles(read.warehouse), self._schema, read.plan.own_names, read.plan.added)
        return [_Bin(reader, each) for each in in_blocks(partitions, TASK_BYTES)] or [_Bin(reader, ())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what a task was given."""
        reader, partitions = partition.value
        with remedies_told():
            for table in read_in_task(reader, partitions):
                yield from table.to_batches()


def column_types(schema: T.StructType) -> Schema:
    """Return the types of the columns that Spark was told of."""
    return {field.name: _column_type(field) for field in schema}


def _column_type(field: T.StructField) -> ColumnType:
    """Return the type of a column that Spark was told of; text that is JSON is a string there."""
    with suppress(InvalidInput):
        found = ColumnType(field.dataType.simpleString())
        if spark_type(found) == field.dataType:
            return found
    raise InvalidInput.of(f"type of column {field.name}", field.dataType.simpleString(), f"one of {KINDS}")


def check_holds(schema: Schema, plan: ReadPlan) -> None:
    """Refuse a schema, declared or loaded some time ago, that cannot hold what is published by now."""
    names = plan.query.names_in_reads
    for contract in plan.contracts:
        shown = names.get(contract.schema_version, {})
        for column in contract.columns:
            declared = schema.get(shown.get(column.name, column.name))
            if declared is not None and common_type([declared, column.type]) is not declared:
                raise Irreconcilable(
                    f"column {column.name} of {plan.query.name} was loaded as {declared},"
                    f" but is {column.type} in schema_version {contract.schema_version}",
                    remedy="Load it again, with the schema that is in force.",
                )
