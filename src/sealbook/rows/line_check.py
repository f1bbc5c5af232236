"""What is wrong with one line of a payload: the slow and exact look, taken once the quick one has failed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from sealbook.model.contract import Column, ColumnType
from sealbook.rows.offending import JSON, TYPES
from sealbook.rows.types import is_text

MOST_NESTING = 100
"""How deep objects and arrays may lie in each other; the object of the line is the first."""

_WHITESPACE = b" \t\r"
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(rb"[][{}]")
_WHOLE = {ColumnType.INT: 2**31, ColumnType.BIGINT: 2**63}
_MOST_DIGITS = 20  # of a whole number that a column can hold, with its sign
# From here on the nearest value of the type is infinite: half a step beyond the greatest one.
_INFINITE = {
    ColumnType.FLOAT: Decimal(2**128 - 2**103),
    ColumnType.DOUBLE: Decimal(2**1024 - 2**970),
}


@dataclass(frozen=True, slots=True)
class CheckedLine:
    """A line: what makes it unfit to be a row, if anything does, and its columns outside the contract."""

    problem: str | None = None
    reasons: tuple[str, ...] = ()
    extra_columns: tuple[str, ...] = ()


class LineCheck:
    """Says whether a line is a JSON object whose values fit some columns, whatever a parser makes of it."""

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
        extra_columns = tuple(name for name in given if name not in self._types)
        reasons = []
        for name, value in pairs:
            wrong = None if value is None or name not in self._types else _mistyped(value, self._types[name])
            if wrong is not None:
                reasons.append(f"{name} is {wrong}")
        return CheckedLine(TYPES if reasons else None, tuple(reasons), extra_columns)

    def plain(self, line: bytes) -> bytes:
        """Return a line that was found good, with its columns alone and numbers that any parser takes."""
        members = (
            f"{json.dumps(name)}:{_plain(value)}" for name, value in _decode(line) if name in self._types
        )
        return b"{" + ",".join(members).encode() + b"}"


def nests_too_deeply(line: bytes) -> bool:
    """Say whether objects and arrays lie in each other more than `MOST_NESTING` deep."""
    if line.count(b"{") + line.count(b"[") <= MOST_NESTING:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", line)):
        depth += 1 if bracket in b"{[" else -1
        if depth > MOST_NESTING:
            return True
    return False


class _NotAnObject(Exception):
    """The line is not a JSON object; the text says what it is."""


class _Object(list[tuple[str, object]]):
    """The members of a JSON object in their order, repeated names included."""


class _Number(str):
    """A number as it is written: nothing is rounded before it is known for which column it is."""

    __slots__ = ()


class _Whole(_Number):
    """A number without fraction and exponent."""

    __slots__ = ()


def strip(line: bytes) -> bytes:
    """Take off the whitespace that JSON allows around a value."""
    return line.strip(_WHITESPACE)


def _decode(line: bytes) -> _Object:
    """Return the members of a JSON object."""
    if not strip(line):
        raise _NotAnObject("a blank line")
    if nests_too_deeply(line):
        raise _NotAnObject(f"nested more than {MOST_NESTING} deep")
    try:
        value = _DECODER.decode(line.decode())
    except UnicodeDecodeError:
        raise _NotAnObject("not UTF-8") from None
    except json.JSONDecodeError:
        raise _NotAnObject("not JSON") from None
    if not isinstance(value, _Object):
        raise _NotAnObject(f"{_kind(value)} instead of an object")
    if _ESCAPED_SURROGATE.search(line):
        _refuse_lone_surrogates(value)
    return value


def _refuse_constant(_name: str) -> NoReturn:
    raise _NotAnObject("not JSON")  # NaN and the infinities, which Python would take


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Whole, parse_float=_Number, parse_constant=_refuse_constant
)


def _refuse_lone_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _NotAnObject("not Unicode") from None


def _mistyped(value: object, expected: ColumnType) -> str | None:
    """Say what a value is instead of one of a type; None if it is one."""
    match value:
        case _Number() if expected in _WHOLE:
            if not isinstance(value, _Whole):
                return f"a fraction, not {expected}"
            bound = _WHOLE[expected]
            if len(value) > _MOST_DIGITS or not -bound <= int(value) < bound:
                return f"out of range for {expected}"
            return None
        case _Number() if expected in _INFINITE:
            return f"out of range for {expected}" if _exact(value).copy_abs() >= _INFINITE[expected] else None
        case _Number():
            pass
        case bool() if expected is ColumnType.BOOLEAN:
            return None
        case str() if is_text(expected):
            return None
    return f"{_kind(value)}, not {expected}"


def _exact(number: _Number) -> Decimal:
    try:
        return Decimal(number)
    except InvalidOperation:  # no computer has room for such an exponent
        mantissa, _, exponent = number.lower().partition("e")
        beyond = mantissa.strip("-0.") and not exponent.startswith("-")
        return Decimal("inf") if beyond else Decimal("-0" if mantissa.startswith("-") else 0)


def _plain(value: object) -> str:
    """Return a value as JSON; a zero without its exponent, which a parser may find too great."""
    if isinstance(value, _Whole):
        return value
    if isinstance(value, _Number):
        exact = _exact(value)
        if exact:
            return f"{exact:E}"
        return "-0.0" if exact.is_signed() else "0.0"
    return json.dumps(value)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case _Object():
            return "an object"
        case list():
            return "an array"
        case _Number():
            return "a number"
        case str():
            return "a string"
        case bool():
            return "a boolean"
    raise AssertionError(f"{value!r} does not come of JSON")
