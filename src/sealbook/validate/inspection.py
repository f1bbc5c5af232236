"""What a task finds in blocks by itself, and which rows it hands to Spark for the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

import pyarrow as pa
import pyarrow.compute as pc

from sealbook.model.contract import Contract
from sealbook.rows.blocks import Block, Part
from sealbook.rows.offending import MAX_REASONS, OffendingLines
from sealbook.rows.types import arrow_type
from sealbook.rows.units import Reading
from sealbook.validate import names
from sealbook.validate.findings import Content, Finding, encode_finding, line_code
from sealbook.validate.key_text import key_text

# A column of a contract begins with a letter: these names are free.
ORDINAL = "_ordinal"
LINE = "_line"
FINDING = "_finding"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the validator makes of what is read: rows with some columns of the contract, and findings.

    The rows of a whole payload are together here, so that is where their primary keys are compared. Those of
    slices are not: then `columns` has the primary key, and Spark compares.
    """

    contract: Contract
    columns: tuple[str, ...]
    sliced: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        types = {column.name: arrow_type(column.type) for column in self.contract.columns}
        own = [(ORDINAL, pa.int32()), (LINE, pa.int64()), (FINDING, pa.binary())]
        return pa.schema(own + [(name, types[name]) for name in self.columns])

    def batches(self, readings: Sequence[Reading], block: Block) -> Iterator[pa.RecordBatch]:
        """Yield the rows, if Spark needs any, and a finding for each reading."""
        if block.table.num_rows:
            if self.contract.date_column is not None:
                self._check_dates(readings, block, self.contract.date_column)
            if self.contract.primary_key and not self.sliced:
                self._check_primary_keys(block, self.contract.primary_key)
            if self.columns:
                yield self._rows(readings, block)
        yield self._findings(readings, block)

    def _check_dates(self, readings: Sequence[Reading], block: Block, date_column: str) -> None:
        dates = block.table.column(date_column).combine_chunks()
        days = pa.array([reading.unit.key.logical_date for reading in readings], pa.date32())
        differs = pc.not_equal(dates, block.repeat_for_rows(days.cast(dates.type)))
        block.mark(names.DATE_COLUMN, pc.fill_null(differs, True))

    def _check_primary_keys(self, block: Block, primary_key: Sequence[str]) -> None:
        """Mark each row whose primary key an earlier row of the same payload has."""
        keyed = block.table.select(primary_key).append_column(ORDINAL, block.part_numbers)
        for index, values in enumerate(keyed.columns):
            if pa.types.is_floating(values.type):
                # 0.0 and -0.0 are equal, though their bits are not.
                keyed = keyed.set_column(index, keyed.field(index), pc.add(values, pa.scalar(0, values.type)))
        together = [*primary_key, ORDINAL]
        if keyed.group_by(together, use_threads=False).aggregate([]).num_rows == keyed.num_rows:
            return
        rows = pa.array(range(keyed.num_rows), pa.int64())
        groups = keyed.append_column(LINE, rows).group_by(together, use_threads=False)
        first = groups.aggregate([(LINE, "min")]).column(f"{LINE}_min")
        repeated = pc.invert(pc.is_in(rows, value_set=first))
        block.mark(names.PRIMARY_KEY, repeated)
        for index, keys in _texts_of_keys(block, primary_key, repeated).items():
            block.parts[index].mark(names.PRIMARY_KEY, OffendingLines(reasons=nsmallest(MAX_REASONS, keys)))

    def _rows(self, readings: Sequence[Reading], block: Block) -> pa.RecordBatch:
        ordinals = pa.array([reading.unit.ordinal for reading in readings], pa.int32())
        pieces = pa.array([line_code(reading.unit.piece, 0) for reading in readings], pa.int64())
        lines = block.line_numbers
        if self.sliced:
            lines = pc.add(lines, block.repeat_for_rows(pieces))
        own = [block.repeat_for_rows(ordinals), lines, pa.nulls(len(lines), pa.binary())]
        columns = [block.table.column(name).combine_chunks() for name in self.columns]
        return pa.RecordBatch.from_arrays(own + columns, schema=self.schema)

    def _findings(self, readings: Sequence[Reading], block: Block) -> pa.RecordBatch:
        found = [
            encode_finding((reading.unit.piece, _finding(reading, part)))
            for reading, part in zip(readings, block.parts, strict=True)
        ]
        ordinals = pa.array([reading.unit.ordinal for reading in readings], pa.int32())
        own = [ordinals, pa.nulls(len(found), pa.int64()), pa.array(found, pa.binary())]
        nulls = [pa.nulls(len(found), field.type) for field in list(self.schema)[len(own) :]]
        return pa.RecordBatch.from_arrays(own + nulls, schema=self.schema)


def _texts_of_keys(
    block: Block, primary_key: Sequence[str], repeated: pa.BooleanArray
) -> Mapping[int, set[str]]:
    """Return what the keys of some rows are, by the index of their part."""
    found: dict[int, set[str]] = defaultdict(set)
    keys = block.table.select(primary_key).filter(repeated)
    parts = block.part_numbers.filter(repeated).to_pylist()
    for index, *values in zip(parts, *(column.to_pylist() for column in keys.columns), strict=True):
        found[index].add(key_text(values))
    return found


def _finding(reading: Reading, part: Part) -> Finding:
    if reading.problem is not None:
        return reading.problem
    return Content(part.lines, part.rows, part.offending, reading.record_count, reading.day)
