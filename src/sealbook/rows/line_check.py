"""What is wrong with one line of a payload: the slow and exact look, taken once the quick one has failed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sealbook.model.column_types import ColumnType, DecimalType
from sealbook.model.contract import Column
from sealbook.rows.nested import extra_members, to_decimal
from sealbook.rows.offending import JSON, TYPES
from sealbook.rows.values import Members, NotJson, Number, Whole, decode, exact, kind_of, mistyped

MOST_NESTING = 100
"""How deep objects and arrays may lie in each other; the object of the line is the first."""

_WHITESPACE = b" \t\r"
ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a pair, or one that is whole."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(rb"[][{}]")


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
        extra_columns = [name for name in given if name not in self._types]
        reasons = []
        for name, value in pairs:
            expected = self._types.get(name)
            if value is None or expected is None:
                continue
            if expected.is_nested:  # whether it fits is found where it is given its type, as with dates
                extra_columns += extra_members(name, value, expected)
            elif (wrong := mistyped(value, expected)) is not None:
                reasons.append(f"{name} is {wrong}")
        return CheckedLine(TYPES if reasons else None, tuple(reasons), tuple(extra_columns))

    def plain(self, line: bytes) -> bytes:
        """Return a line that was found good, with its columns alone and numbers that any parser takes.

        Columns that are nested are left out.
        """
        members = (
            f"{json.dumps(name)}:{_plain(value, self._types[name])}"
            for name, value in _decode(line)
            if name in self._types and not self._types[name].is_nested
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


def strip(line: bytes) -> bytes:
    """Take off the whitespace that JSON allows around a value."""
    return line.strip(_WHITESPACE)


def _decode(line: bytes) -> Members:
    """Return the members of a JSON object."""
    if not strip(line):
        raise _NotAnObject("a blank line")
    if nests_too_deeply(line):
        raise _NotAnObject(f"nested more than {MOST_NESTING} deep")
    try:
        value = decode(line.decode())
    except UnicodeDecodeError:
        raise _NotAnObject("not UTF-8") from None
    except NotJson:
        raise _NotAnObject("not JSON") from None
    if not isinstance(value, Members):
        raise _NotAnObject(f"{kind_of(value)} instead of an object")
    if ESCAPED_SURROGATE.search(line):
        _refuse_lone_surrogates(value)
    return value


def _refuse_lone_surrogates(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _NotAnObject("not Unicode") from None


def _plain(value: object, column_type: ColumnType) -> str:
    """Return a value as JSON in a way that any parser takes.

    A zero has no exponent, which a parser may find too great; a decimal has the digits of its type.
    """
    if isinstance(column_type, DecimalType) and isinstance(value, str):
        return f'"{to_decimal(value, column_type):f}"'
    if isinstance(value, Whole):
        return value
    if isinstance(value, Number):
        number = exact(value)
        if number:
            return f"{number:E}"
        return "-0.0" if number.is_signed() else "0.0"
    return json.dumps(value)
