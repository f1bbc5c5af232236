"""Partitions with faults of many kinds at known places: what a validator must find is known beforehand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sealbook.model import PartitionKey
from sealbook.model.verdict import MAX_LINES
from sealbook.validate import names
from tests.support.validation import encoded, key, payload_file, row, rows, seal, without

ROWS = 10

Found = dict[str, tuple[int, tuple[int, ...]]]
"""The checks that fail: how many lines offend, and the first of them."""


@dataclass(frozen=True)
class Seeded:
    """A partition as it was sealed, and what must be found in it."""

    kind: str
    key: PartitionKey
    payload: bytes
    failed: Found
    is_accepted: bool = False
    metadata: Mapping[str, object] = field(default_factory=dict)
    spoil: Callable[[Path], object] | None = None
    """What happens to the payload after the seal."""

    def seal(self, root: Path) -> None:
        """Put it there."""
        seal(root, self.key, self.payload, says=self.metadata)
        if self.spoil is not None:
            self.spoil(payload_file(root, self.key))


def batch(size: int, faults: int) -> Iterator[Seeded]:
    """Yield good partitions, and among them so many of each kind of fault."""
    kinds = list(_KINDS) * faults
    every = size // len(kinds)
    for number in range(size):
        place = key(f"c{number}")
        if number % every == 0 and number // every < len(kinds):
            yield _seed(kinds[number // every], place, number // every)
        else:
            yield Seeded("good", place, encoded(rows(ROWS)), {}, is_accepted=True)


def kinds() -> list[str]:
    """Return every kind of fault."""
    return list(_KINDS)


def _seed(kind: str, place: PartitionKey, number: int) -> Seeded:
    return _KINDS[kind](kind, place, number)


def _line_at(check: str, spoilt: Callable[[int], object]) -> Callable[[str, PartitionKey, int], Seeded]:
    """Return a kind that spoils one line, here or there."""

    def seeded(kind: str, place: PartitionKey, number: int) -> Seeded:
        line = number % ROWS + 1
        lines: list[object] = [*rows(ROWS)]
        lines[line - 1] = spoilt(line)
        return Seeded(kind, place, encoded(lines), {check: (1, (line,))})

    return seeded


def _in_lines(check: str, lines: range, **changes: object) -> Callable[[str, PartitionKey, int], Seeded]:
    """Return a kind that changes a column in several lines."""

    def seeded(kind: str, place: PartitionKey, _number: int) -> Seeded:
        changed = [row(line) | (changes if line in lines else {}) for line in range(1, ROWS + 1)]
        return Seeded(kind, place, encoded(changed), {check: (len(lines), tuple(lines)[:MAX_LINES])})

    return seeded


def _repeated_key(kind: str, place: PartitionKey, number: int) -> Seeded:
    first = number % (ROWS - 2) + 1
    changed = [row(first if line in (first + 1, ROWS) else line) for line in range(1, ROWS + 1)]
    return Seeded(kind, place, encoded(changed), {names.PRIMARY_KEY: (2, (first + 1, ROWS))})


def _after_seal(*checks: str, spoil: Callable[[Path], object]) -> Callable[[str, PartitionKey, int], Seeded]:
    def seeded(kind: str, place: PartitionKey, _number: int) -> Seeded:
        failed: Found = dict.fromkeys(checks, (1, ()))
        return Seeded(kind, place, encoded(rows(ROWS)), failed, spoil=spoil)

    return seeded


def _seal_says(check: str, **metadata: object) -> Callable[[str, PartitionKey, int], Seeded]:
    def seeded(kind: str, place: PartitionKey, _number: int) -> Seeded:
        return Seeded(kind, place, encoded(rows(ROWS)), {check: (1, ())}, metadata=metadata)

    return seeded


def _harmless(payload: bytes, failed: Found | None = None) -> Callable[[str, PartitionKey, int], Seeded]:
    def seeded(kind: str, place: PartitionKey, _number: int) -> Seeded:
        return Seeded(kind, place, payload, failed or {}, is_accepted=True)

    return seeded


def _empty(kind: str, place: PartitionKey, _number: int) -> Seeded:
    return Seeded(kind, place, b"", {names.NOT_EMPTY: (1, ())})


def _line(number: int) -> bytes:
    return json.dumps(row(number)).encode()


def _flip_a_digit(payload: Path) -> None:
    data = payload.read_bytes()
    payload.write_bytes(data.replace(b"1000", b"1001", 1))


def _cut_in_half(payload: Path) -> None:
    data = payload.read_bytes()
    payload.write_bytes(data[: len(data) // 2])


_KINDS: dict[str, Callable[[str, PartitionKey, int], Seeded]] = {
    "cut line": _line_at(names.JSON, lambda line: _line(line)[:40]),
    "blank line": _line_at(names.JSON, lambda _: b"  "),
    "array": _line_at(names.JSON, lambda _: b"[1, 2]"),
    "null": _line_at(names.JSON, lambda _: b"null"),
    "two objects in a line": _line_at(names.JSON, lambda line: _line(line) + _line(line)),
    "not UTF-8": _line_at(names.JSON, lambda line: _line(line).replace(b"Campaign", b"\xff")),
    "key given twice": _line_at(names.JSON, lambda line: b'{"campaign_id": 1, ' + _line(line)[1:]),
    "NaN": _line_at(names.JSON, lambda line: _line(line).replace(b"0.5", b"NaN")),
    "text for a number": _line_at(names.TYPES, lambda line: row(line, metrics_clicks="10")),
    "beyond bigint": _line_at(names.TYPES, lambda line: row(line, metrics_clicks=2**63)),
    "fraction": _line_at(names.TYPES, lambda line: row(line, metrics_clicks=1.5)),
    "no such day": _line_at(names.TYPES, lambda line: row(line, segments_date="2026-02-30")),
    "null in a required column": _line_at(names.REQUIRED, lambda line: row(line, segments_device=None)),
    "no required column": _line_at(names.REQUIRED, lambda line: without(row(line), "segments_device")),
    "repeated key": _repeated_key,
    "other day": _line_at(names.DATE_COLUMN, lambda line: row(line, segments_date="2026-01-02")),
    "rule violated": _line_at("cost_not_negative", lambda line: row(line, metrics_cost_micros=-1)),
    "rule violated too often": _in_lines("clicks_within_impressions", range(2, 4), metrics_clicks=101),
    "rule violated in most lines": _in_lines("cost_not_negative", range(3, 11), metrics_cost_micros=-1),
    "cut payload": _after_seal(names.PAYLOAD_BYTES, names.PAYLOAD_SHA256, spoil=_cut_in_half),
    "changed payload": _after_seal(names.PAYLOAD_SHA256, spoil=_flip_a_digit),
    "no payload": _after_seal(names.PAYLOAD_BYTES, names.PAYLOAD_SHA256, spoil=Path.unlink),
    "wrong record count": _seal_says(names.RECORD_COUNT, record_count=ROWS + 1),
    "seal of another partition": _seal_says(names.METADATA, customer_id="somebody_else"),
    "seal without a field": _seal_says(names.METADATA, payload_bytes=None),
    "empty": _empty,
    "carriage returns": _harmless(encoded(rows(ROWS)).replace(b"\n", b"\r\n")),
    "no final newline": _harmless(encoded(rows(ROWS))[:-1]),
    "rule violated as tolerated": _harmless(encoded([*rows(ROWS - 1), row(ROWS, metrics_clicks=101)])),
    "extra columns": _harmless(
        encoded([row(line, more=line) for line in range(1, ROWS + 1)]),
        {names.EXTRA_COLUMNS: (10, (1, 2, 3, 4, 5))},
    ),
    "rule that only warns": _harmless(
        encoded([row(1, metrics_conversions=6), *rows(ROWS)[1:]]), {"few_conversions": (1, (1,))}
    ),
}  # fmt: skip
