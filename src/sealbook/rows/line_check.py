"""What is wrong with one line of a payload: the slow and exact look, taken once the quick one has failed."""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from sealbook.model.contract import Column, ColumnType
from sealbook.rows.offending import JSON, TYPES
from sealbook.rows.types import is_text

_WHITESPACE = b" \t\r"
_MOST_DIGITS = 300
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_RANGES = {ColumnType.INT: 2**31, ColumnType.BIGINT: 2**63}


@dataclass(frozen=True, slots=True)
class CheckedLine:
    """A line: what makes it unfit to be a row, if anything does, and its columns outside the contract."""

    problem: str | None = None
    reasons: tuple[str, ...] = ()
    extra_columns: tuple[str, ...] = ()


class LineCheck:
    """Says whether a line is a JSON object whose values fit some columns, just as the Arrow parser would."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self._types = {column.name: column.type for column in columns}

    def check(self, line: bytes) -> CheckedLine:
        """Look at one line, given without its newline."""
        try:
            pairs = _decode(line)
        except _NotAnObject as error:
            return CheckedLine(JSON, (str(error),))
        given = Counter(name for name, _ in pairs)
        for name in self._types:
            if given[name] > 1:
                return CheckedLine(JSON, (f"{name} is given twice",))
        reasons = []
        for name, value in pairs:
            wrong = None if value is None or name not in self._types else _mistyped(value, self._types[name])
            if wrong is not None:
                reasons.append(f"{name} is {wrong}")
        if reasons:
            return CheckedLine(TYPES, tuple(reasons))
        return CheckedLine(extra_columns=tuple(name for name in given if name not in self._types))


class _NotAnObject(Exception):
    """The line is not a JSON object; the text says what it is."""


class _Object(list[tuple[str, object]]):
    """The members of a JSON object in their order, repeated names included."""


def strip(line: bytes) -> bytes:
    """Take off the whitespace that JSON allows around a value."""
    return line.strip(_WHITESPACE)


def _decode(line: bytes) -> _Object:
    """Return the members of a JSON object."""
    if not strip(line):
        raise _NotAnObject("a blank line")
    try:
        value = _DECODER.decode(line.decode())
    except UnicodeDecodeError:
        raise _NotAnObject("not UTF-8") from None
    except json.JSONDecodeError:
        raise _NotAnObject("not JSON") from None
    except RecursionError:
        raise _NotAnObject("nested too deeply") from None
    if not isinstance(value, _Object):
        raise _NotAnObject(f"{_kind(value)} instead of an object")
    if _ESCAPED_SURROGATE.search(line):
        _refuse_lone_surrogates(value)
    return value


def _integer(digits: str) -> float:
    # Python refuses to convert thousands of digits; that many are out of range for any column.
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _refuse_constant(_name: str) -> NoReturn:
    raise _NotAnObject("not JSON")  # NaN and the infinities, which Python would take


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_int=_integer, parse_constant=_refuse_constant)


def _refuse_lone_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _NotAnObject("not Unicode") from None


def _mistyped(value: object, expected: ColumnType) -> str | None:
    """Say what a value is instead of one of a type; None if it is one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if expected in _RANGES:
            if not -_RANGES[expected] <= value < _RANGES[expected]:
                return f"out of range for {expected}"
            return None if isinstance(value, int) else f"a fraction, not {expected}"
        if expected in (ColumnType.FLOAT, ColumnType.DOUBLE):
            return f"out of range for {expected}" if _overflows(value, expected) else None
    elif isinstance(value, bool):
        if expected is ColumnType.BOOLEAN:
            return None
    elif isinstance(value, str) and is_text(expected):
        return None
    return f"{_kind(value)}, not {expected}"


def _overflows(value: float, expected: ColumnType) -> bool:
    if expected is ColumnType.FLOAT:
        try:
            struct.pack("<f", value)  # rounds, as the parser does
        except OverflowError:
            return True
    return math.isinf(value)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case _Object():
            return "an object"
        case list():
            return "an array"
        case str():
            return "a string"
        case bool():
            return "a boolean"
    return "a number"
