"""Statements that SQLite's driver executes for each of many rows.

They are compiled once: SQLAlchemy's own way spends several times the insert itself on a row's parameters. The
driver in its turn spends more on a None than on any other value. So what no row has is not a parameter, but
NULL in the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, bindparam, null
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.dml import UpdateBase

Values = Mapping[str, ColumnElement[Any]]
"""What a statement has for each column of a table, by the column's name."""


class _Compiled(NamedTuple):
    text: str
    places: Sequence[int]
    """For each parameter, the column that it is of."""


class RowStatement:
    """A statement on a row with a value for every column of a table, in the table's order."""

    def __init__(self, table: Table, build: Callable[[Values], UpdateBase]) -> None:
        self._table = table
        self._build = build
        self._nullable = [index for index, each in enumerate(table.c) if each.nullable]
        self._compiled: dict[tuple[int, ...], _Compiled] = {}

    def prepare(self, rows: Sequence[Sequence[Any]]) -> tuple[str, list[tuple[Any, ...]]]:
        """Return the statement for these rows, and its parameters for each; values are as SQLite has them."""
        columns = list(zip(*rows, strict=True))
        absent = tuple(index for index in self._nullable if columns[index].count(None) == len(rows))
        compiled = self._compiled.get(absent)
        if compiled is None:
            compiled = self._compiled[absent] = self._compile(absent)
        return compiled.text, list(zip(*map(columns.__getitem__, compiled.places), strict=True))

    def _compile(self, absent: tuple[int, ...]) -> _Compiled:
        # A parameter may have any name but its column's own, which SQLAlchemy keeps for itself.
        indices = {f"new_{each.name}": index for index, each in enumerate(self._table.c)}
        values = {
            each.name: null() if index in absent else bindparam(f"new_{each.name}", type_=each.type)
            for index, each in enumerate(self._table.c)
        }
        compiled = self._build(values).compile(dialect=sqlite.dialect())
        return _Compiled(str(compiled), [indices[name] for name in compiled.positiontup or ()])
