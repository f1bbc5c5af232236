"""Parsed columns into the types of their contract: what was read as text becomes what it stands for."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column
from sealbook.rows.nested import Mistyped, from_json
from sealbook.rows.types import FROM_TEXT, arrow_type


def from_text(column: Column, values: pa.StringArray) -> tuple[pa.Array, dict[str, pa.BooleanArray]]:
    """Give values the column's own type, and say which are no such value, by the reason why."""
    if column.type in FROM_TEXT:
        return _day_or_time(column, values)
    if column.type.is_nested and column.type is not ColumnType.JSON:
        return _nested(column, values)
    return values, {}


def _day_or_time(column: Column, values: pa.StringArray) -> tuple[pa.Array, dict[str, pa.BooleanArray]]:
    encoded = values.dictionary_encode()
    parsed = map(FROM_TEXT[column.type], encoded.dictionary.to_pylist())
    converted = pa.array(parsed, arrow_type(column.type)).take(encoded.indices)
    if converted.null_count == values.null_count:
        return converted, {}
    wrong = pc.and_not(pc.is_null(converted), pc.is_null(values))
    return converted, {f"{column.name} is text, but no {column.type}": wrong}


def _nested(column: Column, values: pa.StringArray) -> tuple[pa.Array, dict[str, pa.BooleanArray]]:
    encoded = values.dictionary_encode()
    distinct: list[object] = []
    wrong: dict[str, list[int]] = {}
    for place, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            distinct.append(from_json(text, column.type))
        except Mistyped as error:
            distinct.append(None)
            wrong.setdefault(f"{column.name}{error}", []).append(place)
    converted = pa.array(distinct, arrow_type(column.type)).take(encoded.indices)
    return converted, {
        reason: pc.fill_null(pc.is_in(encoded.indices, pa.array(places, encoded.indices.type)), False)
        for reason, places in wrong.items()
    }
