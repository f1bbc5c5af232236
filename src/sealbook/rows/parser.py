"""Payloads into rows: many are parsed at once as one block; only to find an error, line by line."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from sealbook.model.contract import Column
from sealbook.rows.blocks import Block, Part
from sealbook.rows.casting import from_text
from sealbook.rows.line_check import MOST_NESTING, LineCheck, nests_too_deeply, strip
from sealbook.rows.offending import EXTRA_COLUMNS, REQUIRED, TYPES, OffendingLines
from sealbook.rows.quoting import Quoting
from sealbook.rows.types import arrow_type, parsed_type

_FEW = 64  # lines that are looked at one by one rather than halved again
_CHUNK = 1 << 20
_LONGEST = 64  # characters of a name that are shown


class RowParser:
    """Parses payloads of JSON lines by the columns of a contract.

    Lines that are no rows are recorded in their part as `json` or `types`; rows with a flaw as `required` (a
    required column is null) or `extra_columns` (the line has columns that the contract has not).
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns])
        self._columns = columns
        self._known = frozenset(self.schema.names)
        self._parsed = pa.schema([(column.name, parsed_type(column.type)) for column in columns])
        self._floats = [each.name for each in self._parsed if pa.types.is_floating(each.type)]
        self._decimals = [each.name for each in self._parsed if pa.types.is_decimal(each.type)]
        self._line_check = LineCheck(columns)
        self._quoting = Quoting(columns) if any(column.type.is_nested for column in columns) else None
        self._objects = msgspec.json.Decoder(dict[str, msgspec.Raw])

    def parse(self, payloads: Sequence[bytes], counted: Sequence[int | None] | None = None) -> Block:
        """Parse payloads as one block, which has a part for each of them.

        `counted` are their numbers of lines, as far as they have been counted before.
        """
        texts = [_normalised(payload) for payload in payloads]
        counts = [
            text.count(b"\n") if known is None else known
            for text, known in zip(texts, counted or [None] * len(texts), strict=True)
        ]
        table = self._parse_clean(b"".join(texts), sum(counts))
        if table is not None:
            block = Block(table, [Part(lines, rows=lines) for lines in counts])
        else:
            parsed = [self._parse_alone(text, lines) for text, lines in zip(texts, counts, strict=True)]
            block = Block(pa.concat_tables([table for table, _ in parsed]), [part for _, part in parsed])
        block = self._typed(block)
        block.mark_with_reasons(REQUIRED, dict(self._nulls(block.table)))
        return block

    def _parse_clean(self, text: bytes, lines: int) -> pa.Table | None:
        """Parse lines that all are objects in the columns of the contract; None if any is not."""
        if lines == 0:
            return self._parsed.empty_table()
        if not _is_object_a_line(text, lines) or self._is_doubtful(text, lines):
            return None
        return self._parse_arrow(text, lines, "error")

    def _is_doubtful(self, text: bytes, lines: int) -> bool:
        """Say whether any line needs the exact look because of what its nested columns may hold."""
        if self._quoting is None:
            return False
        return self._quoting.is_doubtful(text) or _has_deep_nesting(text, lines)

    def _parse_alone(self, text: bytes, lines: int) -> tuple[pa.Table, Part]:
        """Parse one payload, and find out which of its lines are wrong."""
        located = _Located(tables=[self._parsed.empty_table()])
        self._locate(text, 0, lines, located)
        table = pa.concat_tables(located.tables)
        part = Part(lines, table.num_rows, offending=located.offending)
        if part.rows != part.lines:
            part.numbers = pa.array(located.numbers, pa.int64())
        return table, part

    def _locate(self, text: bytes, before: int, lines: int, located: _Located) -> None:
        """Parse lines, halving them until what cannot be parsed is few."""
        table = self._parse_clean(text, lines)
        if table is None:
            table = self._parse_with_extra_columns(text, before, lines, located)
        if table is not None:
            located.keep(table, range(before + 1, before + lines + 1))
        elif lines <= _FEW:
            self._look_at_each(text, before, located)
        else:
            cut = _about_half(text)
            first = text.count(b"\n", 0, cut)
            self._locate(text[:cut], before, first, located)
            self._locate(text[cut:], before + first, lines - first, located)

    def _parse_with_extra_columns(
        self, text: bytes, before: int, lines: int, located: _Located
    ) -> pa.Table | None:
        """Parse lines that are objects, some with columns that the contract does not have."""
        if not _is_object_a_line(text, lines) or _has_deep_nesting(text, lines):
            return None
        if self._quoting is not None and self._quoting.is_doubtful(text):
            return None
        table = self._parse_arrow(text, lines, "ignore")
        if table is None:
            return None
        try:
            objects = self._objects.decode_lines(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None  # what the parser passed over is no JSON
        numbers, names = [], set[str]()
        for number, members in enumerate(objects, start=before + 1):
            extra = members.keys() - self._known
            if self._quoting is not None:
                extra.update(self._quoting.extra_members(members))
            if extra:
                numbers.append(number)
                names |= extra
        if numbers:  # a struct may only have been something else
            located.mark(EXTRA_COLUMNS, OffendingLines(len(numbers), numbers, _shown(names)))
        return table

    def _look_at_each(self, text: bytes, before: int, located: _Located) -> None:
        good: dict[int, bytes] = {}
        for number, line in enumerate(text.split(b"\n")[:-1], start=before + 1):
            checked = self._line_check.check(line)
            if checked.problem is None:
                good[number] = line
            else:
                located.mark(checked.problem, OffendingLines(1, [number], list(checked.reasons)))
            if checked.extra_columns:
                located.mark(EXTRA_COLUMNS, OffendingLines(1, [number], _shown(checked.extra_columns)))
        if good:
            located.keep(self._parse_good(list(good.values())), good)

    def _parse_good(self, lines: Sequence[bytes]) -> pa.Table:
        """Parse lines that the exact look found good."""
        table = self._parse_arrow(b"".join(strip(line) + b"\n" for line in lines), len(lines), "ignore")
        if table is None:
            # The parser refuses some numbers that are good, or that no column wants: 0e999 for one.
            plain = [self._plain(line) + b"\n" for line in lines]
            table = self._read_json(b"".join(plain), len(lines), "error")
        if table is None:
            raise AssertionError("the parser refuses lines that are good")
        return table

    def _plain(self, line: bytes) -> bytes:
        plain = self._line_check.plain(line)
        return plain if self._quoting is None else self._quoting.restored(plain, line)

    def _parse_arrow(self, text: bytes, lines: int, unexpected: str) -> pa.Table | None:
        if self._quoting is None:
            return self._read_json(text, lines, unexpected)
        quoted = self._quoting.quoted(text, exactly=unexpected == "error")
        return None if quoted is None else self._read_json(quoted, lines, unexpected)

    def _read_json(self, text: bytes, lines: int, unexpected: str) -> pa.Table | None:
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(text),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=self._parsed, unexpected_field_behavior=unexpected
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != lines:
            return None
        # The parser takes NaN and Infinity, which are no JSON, and lets a number overflow a float.
        for name in self._floats:
            if pc.all(pc.is_finite(table.column(name))).as_py() is False:
                return None
        return table if self._decimals_fit(table) else None

    def _decimals_fit(self, table: pa.Table) -> bool:
        """Say whether decimals are within their types: the parser lets 1000 pass as a decimal(5,2)."""
        try:
            for name in self._decimals:
                table.column(name).validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True

    def _typed(self, block: Block) -> Block:
        """Give dates, times and nested values their types; a line where that cannot be done is no row."""
        arrays: list[pa.Array] = []
        failed: dict[str, pa.BooleanArray] = {}
        for column, values in zip(self._columns, block.table.columns, strict=True):
            typed, wrong = from_text(column, values.combine_chunks())
            arrays.append(typed)
            failed.update(wrong)
        typed_block = Block(pa.Table.from_arrays(arrays, schema=self.schema), block.parts)
        lost = typed_block.mark_with_reasons(TYPES, failed)
        return typed_block if lost is None else typed_block.without(lost)

    def _nulls(self, table: pa.Table) -> Iterator[tuple[str, pa.BooleanArray]]:
        """Yield the required columns that are null somewhere, and where."""
        for column in self._columns:
            values = table.column(column.name)
            if column.required and values.null_count:
                yield column.name, pc.is_null(values.combine_chunks())


@dataclass(slots=True)
class _Located:
    """The rows of a payload that is looked at closely, their lines, and the lines that are wrong."""

    tables: list[pa.Table]
    numbers: list[int] = field(default_factory=list)
    offending: dict[str, OffendingLines] = field(default_factory=dict)

    def keep(self, table: pa.Table, numbers: Iterable[int]) -> None:
        self.tables.append(table)
        self.numbers.extend(numbers)

    def mark(self, problem: str, lines: OffendingLines) -> None:
        self.offending.setdefault(problem, OffendingLines()).merge(lines)


def _shown(names: Iterable[str]) -> list[str]:
    """Return names that anybody may have made up in a form that can be stored and printed."""
    return [
        name if name.isprintable() and 0 < len(name) <= _LONGEST else ascii(name)[:_LONGEST] for name in names
    ]


def _normalised(payload: bytes) -> bytes:
    """End every line, the last one too, with a newline alone: a carriage return there is only whitespace."""
    if payload and not payload.endswith(b"\n"):
        payload += b"\n"
    return payload.replace(b"\r\n", b"\n") if b"\r" in payload else payload


def _is_object_a_line(text: bytes, lines: int) -> bool:
    """Say whether each line can be an object, and may be given to the parser, which crashes on a first null.

    Inside an object no `}` is followed by a `{`, so each `}`, newline, `{` is where one object ends and the
    next begins. If the parser then finds as many rows as there are lines, no line has none of them, or two.
    """
    return (
        text.startswith(b"{")
        and text.endswith(b"}\n")
        and text.count(b"}\n{") == lines - 1
        and (text.isascii() or _is_utf8(text))
    )


def _has_deep_nesting(text: bytes, lines: int) -> bool:
    """Say whether any line nests too deeply; most texts have too few brackets for a closer look."""
    if text.count(b"{") + text.count(b"[") < lines + MOST_NESTING:
        return False
    return any(map(nests_too_deeply, text.split(b"\n")))


def _is_utf8(text: bytes) -> bool:
    decode = codecs.getincrementaldecoder(
        "utf-8"
    )().decode  # by the MB: as text it could be four times as long
    try:
        for start in range(0, len(text), _CHUNK):
            decode(text[start : start + _CHUNK])
        decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _about_half(text: bytes) -> int:
    """Return where some line begins, near the middle of a text of several lines."""
    middle = len(text) // 2
    cut = text.find(b"\n", middle) + 1
    return cut if cut < len(text) else text.rfind(b"\n", 0, middle) + 1
