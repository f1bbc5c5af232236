"""Faults for every check of a contract, seeded into rows that hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import msgspec

from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract
from sealbook.validate import names

_EXTRA = "sealbook_seeded_fault"
_MOST_ROWS = 100_000
_WRONG_TEXT = b'"seeded fault"'

Line = dict[str, msgspec.Raw]
"""A line: its members by name, as they are written."""

_decode = msgspec.json.Decoder(Line).decode
_encode = msgspec.json.Encoder().encode

_NUMBERS = (b"-1", b"0", b"1", b"2147483647", b"-2147483648")
_VALUES: Mapping[ColumnType, Sequence[bytes]] = {
    ColumnType.STRING: (b'""', b'"seeded fault"', b'"0"', b'"' + b"x" * 1000 + b'"'),
    ColumnType.BOOLEAN: (b"false", b"true"),
    ColumnType.INT: _NUMBERS,
    ColumnType.BIGINT: (*_NUMBERS, b"9223372036854775807", b"-9223372036854775808"),
    ColumnType.FLOAT: (*_NUMBERS, b"0.5", b"1e38"),
    ColumnType.DOUBLE: (*_NUMBERS, b"0.5", b"1e300"),
    ColumnType.DATE: (b'"0001-01-01"', b'"9999-12-31"'),
    ColumnType.TIMESTAMP: (b'"0001-01-01T00:00:00Z"', b'"9999-12-31T00:00:00Z"'),
    ColumnType.JSON: (b"{}", b"[]", b"0", b'""'),
}
"""Values by which rows may violate a rule; null is the last that is tried."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A payload in which something is wrong, and the check that should find it.

    `tampered` says what is done to the sealed run besides: `metadata`, `payload_bytes`, `payload_sha256` or
    `record_count`.
    """

    check: str
    what: str
    lines: Sequence[bytes]
    tampered: str | None = None


def seeded_faults(
    contract: Contract, rows: Sequence[bytes], day: date, rule_columns: Mapping[str, Sequence[str]]
) -> Iterator[Fault]:
    """Yield faults for each check, in the order of checks; a rule gets several, of which one should do.

    `rows` are lines that hold the contract, and `rule_columns` are those that each rule reads.
    """
    yield Fault(names.METADATA, "the seal names another run", rows, names.METADATA)
    yield Fault(names.PAYLOAD_BYTES, "the payload has lost its last byte", rows, names.PAYLOAD_BYTES)
    yield Fault(names.PAYLOAD_SHA256, "a byte of the payload is another", rows, names.PAYLOAD_SHA256)
    yield Fault(names.JSON, "a line is no JSON", [*rows, b"seeded fault"])
    yield Fault(names.RECORD_COUNT, "the seal counts one row more", rows, names.RECORD_COUNT)
    for column in contract.columns:
        if column.type is not ColumnType.JSON:
            wrong = _wrong_value(column.type)
            yield Fault(names.TYPES, f"{column.name} is {wrong.decode()}", _first(rows, {column.name: wrong}))
    for column in contract.columns:
        if column.required:
            yield Fault(names.REQUIRED, f"{column.name} is null", _first(rows, {column.name: b"null"}))
    yield Fault(names.EXTRA_COLUMNS, f"a line has a column {_EXTRA}", _first(rows, {_EXTRA: b"1"}))
    if contract.primary_key:
        yield Fault(names.PRIMARY_KEY, "a line is there twice", [*rows, rows[0]])
    if contract.date_column is not None:
        other = f'"{day - timedelta(days=1) if day > date.min else day + timedelta(days=1)}"'.encode()
        changed = _first(rows, {contract.date_column: other})
        yield Fault(names.DATE_COLUMN, f"{contract.date_column} is {other.decode()}", changed)
    if not contract.allow_empty:
        yield Fault(names.NOT_EMPTY, "there is no line", ())
    yield from _row_counts(contract, rows)
    for rule in contract.rules:
        yield from _violations(rule.name, contract, rows, rule_columns.get(rule.name, ()))


def _row_counts(contract: Contract, rows: Sequence[bytes]) -> Iterator[Fault]:
    """Yield a payload just out of each bound; ratios are to the rows that there are."""
    bounds, usual = contract.row_count, len(rows)
    wanted = {
        "min": None if bounds.min is None else bounds.min - 1,
        "max": None if bounds.max is None else bounds.max + 1,
        "min_ratio": _times(bounds.min_ratio, usual, ROUND_CEILING, -1),
        "max_ratio": _times(bounds.max_ratio, usual, ROUND_FLOOR, 1),
    }
    for name, count in wanted.items():
        if count is not None and 0 <= count <= _MOST_ROWS:
            repeated = (list(rows) * (count // usual + 1))[:count]
            yield Fault(names.ROW_COUNT, f"{name}: there are {count} rows", repeated)


def _times(ratio: Decimal | None, usual: int, rounding: str, step: int) -> int | None:
    return None if ratio is None else int((ratio * usual).to_integral_value(rounding)) + step


def _violations(rule: str, contract: Contract, rows: Sequence[bytes], read: Sequence[str]) -> Iterator[Fault]:
    columns = [column for column in contract.columns if column.name in read]
    for column in columns:
        for value in _VALUES.get(column.type, _NUMBERS if column.type.startswith("decimal") else ()):
            shown = value.decode() if len(value) <= len(_WRONG_TEXT) + 8 else f"a text of {len(value) - 2}"
            yield Fault(rule, f"{column.name} is {shown} in every row", _every(rows, column, value))
    for column in columns:
        yield Fault(rule, f"{column.name} is null in every row", _every(rows, column, b"null"))


def _wrong_value(column_type: ColumnType) -> bytes:
    return b"1" if column_type is ColumnType.STRING or column_type.is_nested else _WRONG_TEXT


def _first(rows: Sequence[bytes], changes: Mapping[str, bytes]) -> list[bytes]:
    return [_changed(rows[0], changes), *rows[1:]]


def _every(rows: Sequence[bytes], column: Column, value: bytes) -> list[bytes]:
    return [_changed(row, {column.name: value}) for row in rows]


def _changed(row: bytes, changes: Mapping[str, bytes]) -> bytes:
    return _encode({**_decode(row), **{name: msgspec.Raw(value) for name, value in changes.items()}})
