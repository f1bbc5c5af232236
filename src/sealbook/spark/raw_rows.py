"""Rows of sealed raw partitions as a DataFrame: Python reads and parses, and hands Arrow batches to the JVM.

A task is told the number of its bin, and finds it in what the job ships. A data source would do as well, but
to plan one Spark starts three Python processes, one after the other, and that takes longer than most jobs.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from sealbook.model.contract import Contract
from sealbook.raw import RawReader
from sealbook.rows.blocks import BLOCK_BYTES, Block
from sealbook.rows.parser import RowParser
from sealbook.rows.problems import Defect
from sealbook.rows.units import Reading, Unit, UnitReader
from sealbook.spark.garbage import freeze_loaded_modules
from sealbook.spark.tasks import attempt_number


class Output(Protocol):
    """What is made of what is read. It is pickled into the job."""

    def batches(self, readings: Sequence[Reading], block: Block) -> Iterator[pa.RecordBatch]:
        """Yield the rows for Spark; `block` has a part for each reading."""
        ...


class ReadsUnits(Protocol):
    """What a task does with the units of its bin. It is pickled into the job."""

    def read(self, units: Sequence[Unit], attempt: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield rows; `attempt` says how often the task was tried before."""
        ...


@dataclass(frozen=True, slots=True)
class Reader:
    """How units become rows."""

    store: RawReader
    contract: Contract
    output: Output
    tries: int
    block_bytes: int = BLOCK_BYTES

    def read(self, units: Sequence[Unit], attempt: int = 0) -> Iterator[pa.RecordBatch]:
        """Read units, block by block."""
        parser = RowParser(self.contract.columns)
        gathered: list[Reading] = []
        size = 0
        for reading in UnitReader(self.store, self.contract.schema_version, self.tries).read_all(
            units, attempt
        ):
            gathered.append(reading)
            size += len(reading.data)
            if size >= self.block_bytes:
                yield from self._batches(parser, gathered)
                gathered, size = [], 0
        if gathered:
            yield from self._batches(parser, gathered)

    def _batches(self, parser: RowParser, readings: Sequence[Reading]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._block(parser, readings)
        except Exception:  # noqa: BLE001 - whatever a line does to our code, its neighbours are judged (R-VER-3)
            for reading in readings:
                yield from self._alone(parser, reading)

    def _alone(self, parser: RowParser, reading: Reading) -> Sequence[pa.RecordBatch]:
        try:
            return self._block(parser, [reading])
        except Exception as error:  # noqa: BLE001 - this is the one; it is set aside, with the cause
            return self._block(parser, [Reading(reading.unit, problem=Defect.of(error))])

    def _block(self, parser: RowParser, readings: Sequence[Reading]) -> Sequence[pa.RecordBatch]:
        block = parser.parse([each.data for each in readings], [each.lines for each in readings])
        return list(self.output.batches(readings, block))  # all or nothing


def raw_rows(
    spark: SparkSession, reader: ReadsUnits, bins: Iterable[Sequence[Unit]], schema: StructType
) -> DataFrame:
    """Return the rows of units, planned but not yet read, a task for each bin; the schema is the output's."""
    tasks = _Tasks(reader, [pickle.dumps(units) for units in bins])
    numbers = spark.range(0, len(tasks.bins), 1, len(tasks.bins))
    # What `DataFrame.mapInArrow` does, but for its demand that pandas be installed, which this does not use.
    read = UserDefinedFunction(tasks, schema, "sealbook_raw", PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    mapped = numbers._jdf.mapInArrow(read(numbers.id)._jc, False, None)  # noqa: SLF001
    return DataFrame(mapped, spark)


@dataclass(frozen=True, slots=True)
class _Tasks:
    """What the tasks of a job do. A bin is pickled on its own: only the task that reads it unpickles it."""

    reader: ReadsUnits
    bins: Sequence[bytes]

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        attempt = attempt_number()
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                units: Sequence[Unit] = pickle.loads(self.bins[number])
                yield from self.reader.read(units, attempt)
