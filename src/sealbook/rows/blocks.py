"""Rows of many payloads in one Arrow table, and how to get from a row back to its payload and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from sealbook.model.verdict import MAX_LINES
from sealbook.rows.offending import OffendingLines

BLOCK_BYTES = 4 * 1024 * 1024
"""Payloads are gathered up to this size and parsed at once: even a small parse has its price."""


@dataclass(slots=True)
class Part:
    """One payload of a block: how many lines it has, which are rows, and which are wrong."""

    lines: int
    rows: int
    numbers: pa.Int64Array | None = None
    """The line of each row, from 1; None when every line is a row."""
    offending: dict[str, OffendingLines] = field(default_factory=dict)
    """By what is wrong with them."""

    def mark(self, problem: str, lines: OffendingLines) -> None:
        """Record lines that are wrong."""
        self.offending.setdefault(problem, OffendingLines()).merge(lines)


@dataclass(frozen=True)
class Block:
    """Rows of several payloads, one payload after the other."""

    table: pa.Table
    parts: Sequence[Part]

    @cached_property
    def line_numbers(self) -> pa.Int64Array:
        """The line of each row in its payload, from 1."""
        numbers = [_one_to(part.rows) if part.numbers is None else part.numbers for part in self.parts]
        return pa.concat_arrays(numbers) if numbers else _one_to(0)

    @cached_property
    def part_numbers(self) -> pa.Int32Array:
        """The index of each row's part."""
        return self.repeat_for_rows(pa.array(range(len(self.parts)), pa.int32()))

    def repeat_for_rows(self, values: pa.Array) -> pa.Array:
        """Turn one value for each part into one for each row."""
        filled = [index for index, part in enumerate(self.parts) if part.rows]
        ends = pa.array(accumulate(self.parts[index].rows for index in filled), pa.int32())
        runs = pa.RunEndEncodedArray.from_arrays(ends, values.take(pa.array(filled, pa.int32())))
        return pc.run_end_decode(runs)

    def offending(self, mask: pa.BooleanArray) -> Iterator[tuple[int, OffendingLines]]:
        """Yield the index of each part that the mask picks rows of, and their lines."""
        picked = pc.indices_nonzero(mask)
        runs = pc.run_end_encode(self.part_numbers.take(picked))
        start = 0
        for end, index in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
            first = self.line_numbers.take(picked.slice(start, min(MAX_LINES, end - start)))
            yield index, OffendingLines(end - start, first.to_pylist())
            start = end

    def mark(self, problem: str, mask: pa.BooleanArray) -> None:
        """Record in their parts the rows that the mask picks."""
        for index, lines in self.offending(mask):
            self.parts[index].mark(problem, lines)

    def mark_with_reasons(self, problem: str, masks: Mapping[str, pa.BooleanArray]) -> pa.BooleanArray | None:
        """Record in their parts the rows that masks pick, by the reason why; return the mask of them all."""
        if not masks:
            return None
        for reason, mask in masks.items():
            for index, _ in self.offending(mask):
                self.parts[index].mark(problem, OffendingLines(reasons=[reason]))
        picked = reduce(pc.or_, masks.values())
        self.mark(problem, picked)
        return picked

    def without(self, mask: pa.BooleanArray) -> Block:
        """Return the block without the rows that the mask picks."""
        kept = pc.invert(mask)
        numbers = self.line_numbers.filter(kept)
        dropped = {index: lines.count for index, lines in self.offending(mask)}
        start = 0
        for index, part in enumerate(self.parts):
            part.rows -= dropped.get(index, 0)
            part.numbers = numbers.slice(start, part.rows)
            start += part.rows
        return Block(self.table.filter(kept), self.parts)


_numbers = pa.array([], pa.int64())


def _one_to(count: int) -> pa.Int64Array:
    global _numbers  # one ever longer array serves every payload of the process
    if len(_numbers) < count:
        _numbers = pa.array(range(1, 2 * count + 1), pa.int64())
    return _numbers.slice(0, count)
