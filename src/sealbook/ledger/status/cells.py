"""The grid's cells: a letter for each day of a series, filled in from SQL, with no object for a cell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, not_, select

from sealbook.ledger.status.asking import Asked, Series
from sealbook.ledger.status.fetching import fetch
from sealbook.ledger.status.given import row
from sealbook.ledger.status.held import (
    FAILED,
    FAILED_SINCE,
    MATERIALIZED,
    READABLE,
    Held,
    Shape,
    hold,
)
from sealbook.ledger.status.tables import day_number
from sealbook.model import PartitionKey
from sealbook.model.display import Cell
from sealbook.model.status_line import DayCells

CELLS = tuple(Cell)
_BLANK = len(CELLS)
_LETTERS = {number: cell.letter for number, cell in enumerate(CELLS)} | {_BLANK: " "}
_MISSING, _PROVISIONAL = CELLS.index(Cell.MISSING), CELLS.index(Cell.PROVISIONAL)
_RUNNING = CELLS.index(Cell.RUNNING)
_NOT_RUNNING = [CELLS.index(each) for each in (Cell.WITHDRAWN, Cell.MATERIALIZED, Cell.PROVISIONAL)]


def cells_of(
    connection: Connection, asked: Asked, first: date, last: date, running: Collection[PartitionKey]
) -> list[DayCells]:
    """Return the cells of all series that are asked for, from a day to a day."""
    begin, end = day_number(first), day_number(last)
    series = [
        each._replace(since=max(each.since, begin), until=min(each.until, end)) for each in asked.series
    ]
    asked = replace(asked, series=[each for each in series if each.since <= each.until])
    days = {each.name: bytearray([_BLANK]) * (end - begin + 1) for each in asked.series}
    for each in asked.series:
        _fill_in(days[each.name], each, begin)
    numbers = {each.number: days[each.name] for each in asked.series if each.number is not None}
    if numbers:
        query = _query(connection.dialect.name, asked.shape)
        for number, day, cell in fetch(connection, query, asked):
            numbers[number][day - begin] = cell
    for key in running:
        place = day_number(key.logical_date) - begin
        found = days.get((key.source, key.customer_id, key.query_name), bytearray())
        if 0 <= place < len(found) and found[place] not in _NOT_RUNNING:
            found[place] = _RUNNING
    return [DayCells(*name, found.decode("latin-1").translate(_LETTERS)) for name, found in days.items()]


def _fill_in(cells: bytearray, series: Series, begin: int) -> None:
    """Fill in the cells of a series as if nobody had touched it."""
    for each in series.stretches:
        first, last = max(each.first, series.since), min(each.last, series.until)
        if each.expected and first <= last:
            cell = _MISSING if each.due else _PROVISIONAL
            cells[first - begin : last - begin + 1] = bytes([cell]) * (last - first + 1)


@cache
def _query(dialect: str, shape: Shape) -> Select[Any]:
    held = hold(dialect, shape)
    cells = select(row.series_id, row.day, cell_of_row(held))
    return cells.select_from(held.rows.source).where(held.rows.asked)


def cell_of_row(held: Held) -> ColumnElement[int]:
    """Return the cell of a row, by its place, as `cell_of` does."""
    place = CELLS.index
    return case(
        (and_(not_(MATERIALIZED), FAILED), place(Cell.FAILED)),
        (not_(MATERIALIZED), place(Cell.PENDING)),
        (not_(READABLE), place(Cell.WITHDRAWN)),
        (FAILED_SINCE, place(Cell.LAST_ATTEMPT_FAILED)),
        (held.reasons != 0, place(Cell.STALE)),
        (and_(held.expected, not_(held.due)), place(Cell.PROVISIONAL)),
        else_=place(Cell.MATERIALIZED),
    )
