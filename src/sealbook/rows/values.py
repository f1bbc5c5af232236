"""Values of JSON as they are written, and whether one fits a type: nothing is rounded before."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from sealbook.model.column_types import ColumnType, DecimalType
from sealbook.rows.types import is_text

_WHOLE = {ColumnType.INT: 2**31, ColumnType.BIGINT: 2**63}
_MOST_DIGITS = 20  # of a whole number that a column can hold, with its sign
# From here on the nearest value of the type is infinite: half a step beyond the greatest one.
_INFINITE = {
    ColumnType.FLOAT: Decimal(2**128 - 2**103),
    ColumnType.DOUBLE: Decimal(2**1024 - 2**970),
}
_DECIMAL_TEXT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class NotJson(Exception):
    """What was to be read is no JSON."""


class Members(list[tuple[str, object]]):
    """The members of a JSON object in their order, repeated names included."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


class Whole(Number):
    """A number without fraction and exponent."""

    __slots__ = ()


def decode(text: str) -> object:
    """Return a value of JSON; NotJson if the text is none."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        raise NotJson from None


def _refuse_constant(_name: str) -> NoReturn:
    raise NotJson  # NaN and the infinities, which Python would take


_DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=Whole, parse_float=Number, parse_constant=_refuse_constant
)


def mistyped(value: object, expected: ColumnType) -> str | None:
    """Say what a value is instead of one of a type that is not nested; None if it is one."""
    if isinstance(expected, DecimalType):
        return _no_decimal(value, expected)
    match value:
        case Number() if expected in _WHOLE:
            if not isinstance(value, Whole):
                return f"a fraction, not {expected}"
            bound = _WHOLE[expected]
            if len(value) > _MOST_DIGITS or not -bound <= int(value) < bound:
                return f"out of range for {expected}"
            return None
        case Number() if expected in _INFINITE:
            return f"out of range for {expected}" if exact(value).copy_abs() >= _INFINITE[expected] else None
        case Number():
            pass
        case bool() if expected is ColumnType.BOOLEAN:
            return None
        case str() if is_text(expected):
            return None
    return f"{kind_of(value)}, not {expected}"


def _no_decimal(value: object, expected: DecimalType) -> str | None:
    """Say why a value is no such decimal: a number or a string with one is, if no digit is lost."""
    if not isinstance(value, str):
        return f"{kind_of(value)}, not {expected}"
    if not isinstance(value, Number) and _DECIMAL_TEXT.fullmatch(value) is None:
        return f"text, but no {expected}"
    mantissa, _, power = value.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("+-").partition(".")
    written = (whole + fraction).lstrip("0")
    if not written:
        return None
    if len(power) > _MOST_DIGITS:  # no decimal has such an exponent, and Python reads no number of any length
        return f"{'finer than' if power.startswith('-') else 'out of range for'} {expected}"
    significant = written.rstrip("0")
    exponent = int(power or 0) - len(fraction) + len(written) - len(significant)
    if len(significant) + exponent > expected.precision - expected.scale:
        return f"out of range for {expected}"
    return f"finer than {expected}" if -exponent > expected.scale else None


def exact(number: str) -> Decimal:
    """Return the value of a number as it is written."""
    try:
        return Decimal(number)
    except InvalidOperation:  # no computer has room for such an exponent
        mantissa, _, exponent = number.lower().partition("e")
        beyond = mantissa.strip("+-0.") and not exponent.startswith("-")
        return Decimal("inf") if beyond else Decimal("-0" if mantissa.startswith("-") else 0)


def kind_of(value: object) -> str:
    """Return what a value is, in words."""
    match value:
        case None:
            return "null"
        case Members():
            return "an object"
        case list():
            return "an array"
        case Number():
            return "a number"
        case str():
            return "a string"
        case bool():
            return "a boolean"
    raise AssertionError(f"{value!r} does not come of JSON")
