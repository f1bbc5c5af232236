"""What a value must be to leave the process and come back the same: text, times, JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import NoReturn

from sealbook.errors import InvalidInput

MAX_DEPTH = 64
"""Levels of nesting that a JSON value may have: beyond any real payload, below the recursion limit."""

MAX_INT_BITS = 1024
"""Python refuses to print whole numbers of thousands of digits; no store needs them."""

_OBJECTS = (dict, Mapping)  # nearly all are of the first, which is quick to see
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def is_storable(text: str) -> bool:
    """Tell whether every database and UTF-8 file can keep the text: no NUL, no lone surrogate."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_utc(field: str, value: object) -> datetime:
    """Return an aware time in UTC; a naive one is refused, for nobody knows what it means."""
    if not isinstance(value, datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInput.of(field, value, "a datetime with a time zone")
    if value.tzinfo is UTC:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError as too_far:
        raise InvalidInput.of(field, value, "a time between the years 1 and 9999 in UTC") from too_far


def format_time(time: datetime) -> str:
    """Write a UTC time as ISO 8601, `2026-01-01T06:00:00Z`."""
    return time.isoformat().removesuffix("+00:00") + "Z"


def parse_time(field: str, text: object) -> datetime:
    """Read an ISO 8601 time that says its offset."""
    if isinstance(text, str):
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return as_utc(field, time)
    raise InvalidInput.of(field, text, "an ISO 8601 time with an offset, such as 2026-01-01T06:00:00Z")


def json_object(field: str, value: object) -> dict[str, object]:
    """Copy a JSON object deeply, or refuse it; the error names the place of what JSON cannot hold."""
    if not isinstance(value, _OBJECTS):
        raise InvalidInput.of(field, value, "a JSON object: a mapping with text keys")
    return _copy_object(field, value, MAX_DEPTH)


def json_value(field: str, value: object) -> object:
    """Copy any JSON value deeply, or refuse it; the error names the place of what JSON cannot hold."""
    return _copy(field, value, MAX_DEPTH)


def dump_json(value: object) -> str:
    """Write compact JSON, the same text for the same value; the value has been checked before."""
    return _encode(value)


def load_json(what: str, text: str | bytes) -> object:
    """Read JSON as its standard has it: UTF-8, and neither NaN nor Infinity."""
    if not isinstance(text, str | bytes):
        raise InvalidInput.of(what, text, "text or bytes")
    try:
        return json.loads(text if isinstance(text, str) else text.decode(), parse_constant=_refuse_constant)
    # ValueError covers what is no JSON, no UTF-8, or a number too long to read.
    except (ValueError, RecursionError) as unreadable:
        raise InvalidInput(
            f"{what} is not readable JSON: {unreadable}", field=what, value=text
        ) from unreadable


def _copy_object(place: str, members: Mapping[object, object], depth: int) -> dict[str, object]:
    copy: dict[str, object] = {}
    for name, value in members.items():
        # Most members of most events are plain: they need no call, and no place for an error.
        if not (type(name) is str and name.isascii() and "\0" not in name) and not (
            isinstance(name, str) and is_storable(name)
        ):
            raise InvalidInput.of(
                f"a key of {place}", name, "text without NUL characters and lone surrogates"
            )
        if (type(value) is str and value.isascii() and "\0" not in value) or (
            type(value) is int and value.bit_length() <= MAX_INT_BITS
        ):
            copy[name] = value
        else:
            copy[name] = _copy(f"{place}.{name}", value, depth - 1)
    return copy


def _copy(place: str, value: object, depth: int) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not is_storable(value):
            raise InvalidInput.of(place, value, "text without NUL characters and lone surrogates")
        return str.__str__(value)  # of a subclass, such as RunId, the text alone
    if isinstance(value, int):
        if value.bit_length() > MAX_INT_BITS:
            raise InvalidInput(f"{place} is a whole number of over {MAX_INT_BITS} bits", field=place)
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise InvalidInput.of(place, value, "a number that JSON can hold, not NaN or Infinity")
        return float(value)
    if depth == 0:
        raise InvalidInput(f"{place} is nested over {MAX_DEPTH} levels deep", field=place)
    if isinstance(value, _OBJECTS):
        return _copy_object(place, value, depth)
    if isinstance(value, list | tuple):
        return [_copy(f"{place}[{index}]", item, depth - 1) for index, item in enumerate(value)]
    raise InvalidInput.of(
        place, value, "a JSON value: null, true, false, a number, text, a list or an object"
    )


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
