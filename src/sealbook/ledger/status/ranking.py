"""Which customers of each query are worth a row of the grid: those with most of the worst cells."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, select

from sealbook.ledger.status.asking import Asked, Series, SeriesName
from sealbook.ledger.status.cells import CELLS, cell_of_row
from sealbook.ledger.status.fetching import fetch
from sealbook.ledger.status.given import row
from sealbook.ledger.status.held import Shape, hold
from sealbook.ledger.status.tables import day_of
from sealbook.model.display import Cell
from sealbook.model.universe import AssetName

_MISSING, _PROVISIONAL = CELLS.index(Cell.MISSING), CELLS.index(Cell.PROVISIONAL)


class Ranked(NamedTuple):
    """The customers of each query that have the worst cells, the span of days, and how many rows more."""

    customers: dict[AssetName, list[str]]
    first: date
    last: date
    left_out: int


def rank(connection: Connection, asked: Asked, rows: int) -> Ranked | None:
    """Rank what is asked for, and take so many rows of each query; None if nothing is expected."""
    counts: dict[int | None, list[int]] = {}
    days: list[int] = []
    expected = [each for each in asked.series if each.expected is not None]
    if any(each.number is not None for each in expected):
        query = _query(connection.dialect.name, asked.shape)
        for number, cell, count, first, last in fetch(connection, query, asked):
            counts.setdefault(number, [0] * len(CELLS))[cell] = count
            days += first, last
    days += [day for each in expected if each.due for day in (each.due[0], each.due[-1])]
    if not days:
        return None

    def badness(series: Series) -> tuple[list[int], SeriesName]:
        found = list(counts.get(series.number, [0] * len(CELLS)))
        found[_MISSING] = len(series.due) - sum(found) + found[_PROVISIONAL]
        return [-count for count in found[:_PROVISIONAL]], series.name

    worst: dict[AssetName, list[str]] = {}
    for each in sorted(expected, key=badness):
        if len(worst.setdefault(each.asset, [])) < rows:
            worst[each.asset].append(each.name[1])
    left_out = len(expected) - sum(map(len, worst.values()))
    return Ranked(worst, day_of(min(days)), day_of(max(days)), left_out)


@cache
def _query(dialect: str, shape: Shape) -> Select[Any]:
    held = hold(dialect, shape)
    groups = (row.series_id, cell_of_row(held))
    counted = (func.count(), func.min(row.day), func.max(row.day))
    found = select(*groups, *counted).select_from(held.rows.source)
    return found.where(held.rows.asked, held.expected).group_by(*groups)
