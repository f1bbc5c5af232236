"""`sealbook_raw`: a Spark data source over sealed raw partitions, planned by the driver.

The plan is handed over as a file, for the driver-side Python process in which Spark asks for the partitions:
neither paths by the thousand nor anything secret goes through options, which show in query plans and logs.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from sealbook.model.contract import Contract
from sealbook.raw import RawReader
from sealbook.rows.blocks import BLOCK_BYTES, Block
from sealbook.rows.parser import RowParser
from sealbook.rows.units import Reading, Unit, UnitReader
from sealbook.spark.garbage import freeze_loaded_modules

FORMAT = "sealbook_raw"
PLAN_OPTION = "plan"


class Output(Protocol):
    """What the source makes of what it reads. It is pickled into the plan."""

    def batches(self, readings: Sequence[Reading], block: Block) -> Iterator[pa.RecordBatch]:
        """Yield the rows for Spark; `block` has a part for each reading."""
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

    def _batches(self, parser: RowParser, readings: list[Reading]) -> Iterator[pa.RecordBatch]:
        block = parser.parse([each.data for each in readings], [each.lines for each in readings])
        return self.output.batches(readings, block)


@dataclass(frozen=True, slots=True)
class RawPlan:
    """Which units each task reads, and how.

    A bin is pickled on its own: only the task that reads it has to unpickle it.
    """

    reader: Reader
    bins: Sequence[bytes]

    @classmethod
    def of(cls, reader: Reader, bins: Iterable[Sequence[Unit]]) -> RawPlan:
        """Plan a task for each bin."""
        return cls(reader, [pickle.dumps(units) for units in bins])

    def save(self, path: Path) -> None:
        """Write the plan to a file that only this user can read."""
        path.touch(mode=0o600)
        path.write_bytes(pickle.dumps(self))

    @classmethod
    def load(cls, path: str) -> RawPlan:
        """Read a plan that this driver saved."""
        plan = pickle.loads(Path(path).read_bytes())
        assert isinstance(plan, cls)
        return plan


class RawSource(DataSource):
    """The data source; its schema is given by `spark.read.schema`, as the plan's output needs it."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the output knows its schema
        """Return the reader of the plan that the option `plan` names."""
        return _RawSourceReader(RawPlan.load(self.options[PLAN_OPTION]))


class _RawSourceReader(DataSourceReader):
    def __init__(self, plan: RawPlan) -> None:
        self._reader = plan.reader
        self._bins: Sequence[bytes] | None = plan.bins

    def __getstate__(self) -> dict[str, object]:
        # A task gets its own bin from Spark; it has no use for all the others.
        return {**self.__dict__, "_bins": None}

    def partitions(self) -> Sequence[InputPartition]:
        """Return one input partition for each bin; runs on the driver."""
        return [InputPartition(units) for units in self._bins or ()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a bin; runs in a task."""
        freeze_loaded_modules()
        context = TaskContext.get()
        units: Sequence[Unit] = pickle.loads(partition.value)
        return self._reader.read(units, attempt=context.attemptNumber() if context else 0)
