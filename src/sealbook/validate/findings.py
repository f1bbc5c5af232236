"""What tasks tell the driver of a run, piece by piece, and how the pieces become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from sealbook.model.contract import Contract
from sealbook.model.sealed_day import SealedDay
from sealbook.rows.offending import OffendingLines
from sealbook.rows.problems import (
    CorruptMetadata,
    CorruptPayload,
    Defect,
    OtherVersion,
    Problem,
    Unreadable,
)

_LINE_BITS = 40
_LINES = (1 << _LINE_BITS) - 1
_NONE: Mapping[int, OffendingLines] = MappingProxyType({})


class Content(msgspec.Struct, frozen=True, array_like=True, tag="content"):
    """The piece holds lines, and some may offend. What the seal says is there if it was read."""

    lines: int
    rows: int
    offending: dict[str, OffendingLines]
    record_count: int | None = None
    day: SealedDay | None = None


Finding = Content | Problem
"""What was found in one piece of a run."""

encode_finding = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, Finding]).decode


def line_code(piece: int, line: int) -> int:
    """Return one number for a line of a piece, in the order of the payload."""
    return piece << _LINE_BITS | line


def repeated_place(contract: Contract) -> int:
    """Return the place in reports of rows that repeat a primary key; the places before it are the rules'."""
    return len(contract.rules)


class Report(NamedTuple):
    """What one task says of one run: pieces of it, and lines that violate rules, by the rule's place."""

    ordinal: int
    findings: Sequence[bytes] = ()
    """Encoded, a piece's number with its finding."""
    violations: Mapping[int, OffendingLines] = _NONE
    """Their lines are line codes."""


@dataclass(slots=True)
class Evidence:
    """All that the tasks have said of one run so far."""

    pieces: dict[int, Finding] = field(default_factory=dict)
    violations: dict[int, OffendingLines] = field(default_factory=dict)

    def add(self, report: Report) -> None:
        """Take in what a task says; a piece that was told before is told the same."""
        for encoded in report.findings:
            piece, finding = _decode(encoded)
            self.pieces[piece] = finding
        for place, lines in report.violations.items():
            self.violations.setdefault(place, OffendingLines()).merge(lines)

    def finding(self) -> Finding:
        """Return what was found of the run as a whole."""
        if len(self.pieces) == 1:
            return next(iter(self.pieces.values()))
        found = [self.pieces[piece] for piece in sorted(self.pieces)]
        for kind in (CorruptMetadata, CorruptPayload, Defect, Unreadable, OtherVersion):
            for finding in found:
                if isinstance(finding, kind):
                    return finding
        return _joined(found)

    def violating(self, place: int) -> OffendingLines:
        """Return the lines that violate the rule at a place of the contract."""
        found = self.violations.get(place)
        if found is None:
            return OffendingLines()
        before = _lines_before(self.pieces)
        lines = [before[code >> _LINE_BITS] + (code & _LINES) for code in found.lines]
        return OffendingLines(found.count, lines, found.reasons)


def _joined(contents: Iterable[Finding]) -> Content:
    lines = rows = 0
    offending: dict[str, OffendingLines] = {}
    record_count = day = None
    for content in contents:
        assert isinstance(content, Content)
        for check, found in content.offending.items():
            offending.setdefault(check, OffendingLines()).merge(found, offset=lines)
        lines += content.lines
        rows += content.rows
        record_count = content.record_count if record_count is None else record_count
        day = day or content.day
    return Content(lines, rows, offending, record_count, day)


def _lines_before(pieces: dict[int, Finding]) -> dict[int, int]:
    before, lines = {}, 0
    for piece in sorted(pieces):
        finding = pieces[piece]
        before[piece] = lines
        lines += finding.lines if isinstance(finding, Content) else 0
    return before
