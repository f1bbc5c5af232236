"""Cells of CSV as values of JSON, by the types of a contract: nothing is guessed, and nothing is judged."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Contract

Make = Callable[[str], object]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBERS = (ColumnType.INT, ColumnType.BIGINT, ColumnType.FLOAT, ColumnType.DOUBLE)
_BOOLEANS = {"true": True, "false": False}


def makers(contract: Contract) -> Callable[[str], Make]:
    """Return how the cells of a column become values, by its name.

    A cell that is no value of its type stays text, which the validator then rejects, and says where.
    """
    types = {column.name: column.type for column in contract.columns}

    def maker(name: str) -> Make:
        kind = types.get(name, ColumnType.STRING)
        if kind in _NUMBERS:
            return _number
        if kind is ColumnType.BOOLEAN:
            return _boolean
        return _json if kind.is_nested else str

    return maker


def _number(cell: str) -> object:
    """Return a number as it is written: no digit is lost."""
    return msgspec.Raw(cell.encode()) if _NUMBER.fullmatch(cell) else cell


def _boolean(cell: str) -> object:
    return _BOOLEANS.get(cell.lower(), cell)


def _json(cell: str) -> object:
    try:
        return msgspec.Raw(msgspec.json.format(cell.encode(), indent=-1))
    except msgspec.DecodeError:
        return cell
