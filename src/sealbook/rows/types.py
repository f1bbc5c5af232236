"""The types of a contract's columns, in Arrow: as a JSON parser reads them, and as rows have them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime

import pyarrow as pa

from sealbook.errors import InvalidInput
from sealbook.model.column_types import ArrayType, ColumnType, DecimalType, MapType, StructType
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
    ColumnType.JSON: pa.string(),
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
    match column_type:
        case DecimalType():
            return pa.decimal128(column_type.precision, column_type.scale)
        case ArrayType():  # by the name that Parquet has for it, and Spark
            return pa.list_(pa.field("element", arrow_type(column_type.element)))
        case MapType():
            return pa.map_(pa.string(), arrow_type(column_type.value))
        case StructType():
            return pa.struct([(name, arrow_type(each)) for name, each in column_type.members.items()])
    return _ARROW[column_type]


def parsed_type(column_type: ColumnType) -> pa.DataType:
    """Return the type that the JSON parser is told to expect: dates and times are text in JSON.

    Nested values are, once they are in quotes.
    """
    is_converted = column_type.is_nested or column_type in FROM_TEXT
    return pa.string() if is_converted else arrow_type(column_type)


def is_text(column_type: ColumnType) -> bool:
    """Say whether values of this type are strings in JSON."""
    return column_type is ColumnType.STRING or column_type in FROM_TEXT


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


FROM_TEXT: dict[ColumnType, Callable[[str], object]] = {
    ColumnType.DATE: _day,
    ColumnType.TIMESTAMP: _moment,
}
"""How types are read that are text in JSON; None is what no such value is."""
