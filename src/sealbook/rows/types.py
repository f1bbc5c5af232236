"""The types of a contract's columns, in Arrow: as a JSON parser reads them, and as rows have them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from sealbook.errors import InvalidInput
from sealbook.model.contract import Column, ColumnType
from sealbook.model.keys import parse_date

_ARROW = {
    ColumnType.STRING: pa.string(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.BIGINT: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}

_HOUR_AND_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIMESTAMP = re.compile(
    "(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]"
    rf"(?P<time>{_HOUR_AND_MINUTE}:[0-5][0-9])(?:\.(?P<fraction>[0-9]+))?"
    rf"(?:[Zz]|(?P<offset>[+-]{_HOUR_AND_MINUTE}))?"
)
_MICROSECOND_DIGITS = 6


def arrow_type(column_type: ColumnType) -> pa.DataType:
    """Return the type that rows have."""
    return _ARROW[column_type]


def parsed_type(column_type: ColumnType) -> pa.DataType:
    """Return the type that the JSON parser is told to expect: dates and times are text in JSON."""
    return pa.string() if column_type in _FROM_TEXT else _ARROW[column_type]


def from_text(column: Column, values: pa.StringArray) -> tuple[pa.Array, pa.BooleanArray | None]:
    """Turn parsed values into the column's own type; the mask says which are no such value, if any is."""
    parse = _FROM_TEXT.get(column.type)
    if parse is None:
        return values, None
    encoded = values.dictionary_encode()
    distinct = pa.array(map(parse, encoded.dictionary.to_pylist()), arrow_type(column.type))
    converted = distinct.take(encoded.indices)
    if converted.null_count == values.null_count:
        return converted, None
    return converted, pc.and_not(pc.is_null(converted), pc.is_null(values))


def is_text(column_type: ColumnType) -> bool:
    """Say whether values of this type are strings in JSON."""
    return column_type is ColumnType.STRING or column_type in _FROM_TEXT


def _day(text: str) -> date | None:
    try:
        return parse_date("date", text)
    except InvalidInput:
        return None


def _moment(text: str) -> datetime | None:
    """Read a time as RFC 3339 writes it, or with a blank for the T; without a zone it is UTC.

    Digits beyond microseconds are cut off, so that no time moves into the next second. A leap second, the
    year 0 and what is in UTC before the year 1 or after 9999 are no times.
    """
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    fraction = (found["fraction"] or "")[:_MICROSECOND_DIGITS].ljust(_MICROSECOND_DIGITS, "0")
    try:
        return datetime.fromisoformat(
            f"{found['day']}T{found['time']}.{fraction}{found['offset'] or '+00:00'}"
        ).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_FROM_TEXT: dict[ColumnType, Callable[[str], object]] = {
    ColumnType.DATE: _day,
    ColumnType.TIMESTAMP: _moment,
}
