"""Rows that a statement is given as parameters, as a table of which the planner knows how long it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ARRAY, CTE, Column, bindparam, func, select

from sealbook.ledger.db.bulk import encode_rows, given_rows


class GivenTable:
    """A table that a statement is given; each of its rows is there once."""

    def __init__(self, name: str, columns: Sequence[Column[Any]]) -> None:
        self._name = name
        self._columns = columns
        self._tables: dict[str, CTE] = {}

    def table(self, dialect: str) -> CTE:
        """Return the table, which is the same one wherever a statement names it."""
        if dialect not in self._tables:
            self._tables[dialect] = self._make(dialect)
        return self._tables[dialect]

    def _make(self, dialect: str) -> CTE:
        if dialect != "postgresql":
            rows = select(given_rows(dialect, self._columns, self._name))
            return rows.cte(self._name).prefix_with("MATERIALIZED")
        arrays = (bindparam(self._of(each), type_=ARRAY(each.type)) for each in self._columns)
        names = [each.name for each in self._columns]
        row = func.unnest(*arrays).table_valued(*names, name=f"{self._name}_row").render_derived()
        columns = [row.c[each.name].label(each.name) for each in self._columns]
        # Grouped, so that PostgreSQL takes it for few rows: it joins them to the table, and not the reverse.
        return select(*columns).group_by(*columns).cte(self._name)

    def parameters(self, dialect: str, rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """Return the parameters that give it these rows."""
        names = [each.name for each in self._columns]
        if dialect != "postgresql":
            return encode_rows((dict(zip(names, row, strict=True)) for row in rows), self._name)
        values = list(zip(*rows, strict=True)) or [()] * len(names)
        return {self._of(each): list(of) for each, of in zip(self._columns, values, strict=True)}

    def _of(self, column: Column[Any]) -> str:
        return f"{self._name}_{column.name}"
