"""Arrays, structs and maps: from the text of a JSON value to a value for Arrow, or what is wrong in it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction

from sealbook.model.column_types import (
    MOST_DIGITS,
    ArrayType,
    ColumnType,
    DecimalType,
    MapType,
    StructType,
)
from sealbook.rows.types import FROM_TEXT
from sealbook.rows.values import Members, Number, decode, exact, kind_of, mistyped

_ROOMY = Context(prec=2 * MOST_DIGITS)
_GREATEST_FLOAT = struct.unpack("<i", struct.pack("<f", float(2**128 - 2**104)))[0]


class Mistyped(Exception):
    """A value is not of its type; the text says which part of it, and what that is instead."""


def from_json(text: str, column_type: ColumnType) -> object:
    """Return the value of a column from its JSON, as Arrow takes it; Mistyped says what is wrong."""
    return _convert(decode(text), column_type, "")


def _convert(value: object, expected: ColumnType, path: str) -> object:
    if value is None:
        return None
    match expected:
        case ArrayType():
            if not isinstance(value, list) or isinstance(value, Members):
                raise _other(value, expected, path)
            return [_convert(each, expected.element, f"{path}[]") for each in value]
        case MapType():
            members = _members(value, expected, path)
            return [(name, _convert(each, expected.value, f"{path}{{}}")) for name, each in members.items()]
        case StructType():
            members = _members(value, expected, path)
            return {
                name: _convert(members.get(name), each, f"{path}.{name}")
                for name, each in expected.members.items()
            }
    return _scalar(value, expected, path)


def _scalar(value: object, expected: ColumnType, path: str) -> object:
    wrong = mistyped(value, expected)
    if wrong is not None:
        raise Mistyped(f"{path} is {wrong}")
    match value:
        case str() if isinstance(expected, DecimalType):
            return to_decimal(value, expected)
        case Number() if expected is ColumnType.FLOAT:
            return _nearest_float(value)
        case Number():
            return float(value) if expected is ColumnType.DOUBLE else int(value)
        case str() if expected in FROM_TEXT:
            read = FROM_TEXT[expected](value)
            if read is None:
                raise Mistyped(f"{path} is text, but no {expected}")
            return read
    return value


def _members(value: object, expected: ColumnType, path: str) -> dict[str, object]:
    if not isinstance(value, Members):
        raise _other(value, expected, path)
    members = dict(value)
    if len(members) < len(value):
        raise Mistyped(f"{path} gives a name twice")
    return members


def _other(value: object, expected: ColumnType, path: str) -> Mistyped:
    return Mistyped(f"{path} is {kind_of(value)}, not {expected}")


def extra_members(path: str, value: object, expected: ColumnType) -> Iterator[str]:
    """Yield the members that structs in a value have besides those of its type, each once, by their path."""
    yield from dict.fromkeys(_extra_members(path, value, expected))


def _extra_members(path: str, value: object, expected: ColumnType) -> Iterator[str]:
    match expected:
        case ArrayType() if isinstance(value, list) and not isinstance(value, Members):
            for each in value:
                yield from _extra_members(f"{path}[]", each, expected.element)
        case MapType() if isinstance(value, Members):
            for _, each in value:
                yield from _extra_members(f"{path}{{}}", each, expected.value)
        case StructType() if isinstance(value, Members):
            for name, each in value:
                if name not in expected.members:
                    yield f"{path}.{name}"
                else:
                    yield from _extra_members(f"{path}.{name}", each, expected.members[name])


def to_decimal(number: str, expected: DecimalType) -> Decimal:
    """Return a number that fits a type with as many places as the type has."""
    return _ROOMY.quantize(exact(number), Decimal((0, (1,), -expected.scale)))


def _nearest_float(number: Number) -> float:
    """Return the nearest number of 32 bits, the even one of two: by way of 64 bits it may be the other."""
    wide = float(number)
    try:
        narrow = _bits_of(abs(wide))
    except OverflowError:
        narrow = _GREATEST_FLOAT
    if _of_bits(narrow) != abs(wide):
        size = abs(Fraction(exact(number)))
        near = (bits for bits in (narrow - 1, narrow, narrow + 1) if 0 <= bits <= _GREATEST_FLOAT)
        narrow = min(near, key=lambda bits: (abs(Fraction(_of_bits(bits)) - size), bits % 2))
    return -_of_bits(narrow) if number.startswith("-") else _of_bits(narrow)


def _bits_of(number: float) -> int:
    return int(struct.unpack("<i", struct.pack("<f", number))[0])


def _of_bits(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])
