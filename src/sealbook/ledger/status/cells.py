"""The grid's cells: a character for each day of a series, put together by SQL, with no object for a cell."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Select, and_, bindparam, case, func, not_, select

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
from sealbook.model.standing import ATTEMPTS, AVAILABILITIES, BLANK, STANDINGS, Standing
from sealbook.model.status import AttemptOutcome
from sealbook.model.status_line import DayCells

CELLS = tuple(Cell)
_BESIDE = len(AVAILABILITIES) * len(ATTEMPTS)
_NOTHING = 0
"""The number of a day on which nothing is expected; those of standings are above."""

_SURROGATES = range(0xD800, 0xE000)
"""Numbers that no character has: spans of more than 150 years pass over them."""


def _number_of(standing: Standing) -> int:
    cell, availability, attempt = standing
    beside = AVAILABILITIES.index(availability) * len(ATTEMPTS) + ATTEMPTS.index(attempt)
    return CELLS.index(cell) * _BESIDE + beside + 1


LETTERS = {_NOTHING: BLANK} | {_number_of(each): each.cell.letter for each in STANDINGS}
CODES = {_NOTHING: BLANK} | {_number_of(each): each.code for each in STANDINGS}
_MISSING, _PROVISIONAL = (_number_of(Standing(each)) for each in (Cell.MISSING, Cell.PROVISIONAL))
_NOT_RUNNING = [CELLS.index(each) for each in (Cell.WITHDRAWN, Cell.MATERIALIZED, Cell.PROVISIONAL)]


def cells_of(
    connection: Connection,
    asked: Asked,
    first: date,
    last: date,
    running: Collection[PartitionKey],
    characters: Mapping[int, str],
) -> list[DayCells]:
    """Return the cells of all series that are asked for, from a day to a day, as LETTERS or as CODES."""
    begin, end = day_number(first), day_number(last)
    series = [
        each._replace(since=max(each.since, begin), until=min(each.until, end)) for each in asked.series
    ]
    asked = replace(asked, series=[each for each in series if each.since <= each.until])
    days = {each.name: bytearray(end - begin + 1) for each in asked.series}
    for each in asked.series:
        _fill_in(days[each.name], each, begin)
    numbers = {each.number: days[each.name] for each in asked.series if each.number is not None}
    if numbers:
        start = min(each.since for each in asked.series)
        query = _query(connection.dialect.name, asked.shape, long=end - start + 1 >= _SURROGATES.start)
        for number, found in fetch(connection, query, asked):
            _put(numbers[number], start - begin, found)
    for key in running:
        place = day_number(key.logical_date) - begin
        cells = days.get((key.source, key.customer_id, key.query_name), bytearray())
        if 0 <= place < len(cells):
            cells[place] = _running(cells[place])
    return [DayCells(*name, found.decode("latin-1").translate(characters)) for name, found in days.items()]


def _fill_in(cells: bytearray, series: Series, begin: int) -> None:
    """Fill in the cells of a series as if nobody had touched it."""
    for each in series.stretches:
        first, last = max(each.first, series.since), min(each.last, series.until)
        if each.expected and first <= last:
            cell = _MISSING if each.due else _PROVISIONAL
            cells[first - begin : last - begin + 1] = bytes([cell]) * (last - first + 1)


def _put(cells: bytearray, start: int, found: str) -> None:
    """Put what was found in its places: a character for a day, counted from 1, and one for its number."""
    days, numbers = found[::2], found[1::2].encode("latin-1")
    first = ord(days[0])
    if days == _calendar()[first : first + len(days)]:
        place = start + first - 1
        cells[place : place + len(numbers)] = numbers
        return
    for place, number in zip(map(ord, days), numbers, strict=True):
        passed = len(_SURROGATES) if place >= _SURROGATES.stop else 0
        cells[start + place - passed - 1] = number


def _running(number: int) -> int:
    """Return the number of a day that a run is at work on, if that shows."""
    cell, beside = divmod((number or _MISSING) - 1, _BESIDE)
    return number if cell in _NOT_RUNNING else CELLS.index(Cell.RUNNING) * _BESIDE + beside + 1


@cache
def _calendar() -> str:
    """Return the characters of days that follow each other."""
    return "".join(map(chr, range(_SURROGATES.start)))


@cache
def _query(dialect: str, shape: Shape, *, long: bool) -> Select[Any]:
    """Return the days of each series in one text: in any order, as each says which it is."""
    held = hold(dialect, shape)
    on_postgresql = dialect == "postgresql"
    character, joined = (func.chr, func.string_agg) if on_postgresql else (func.char, func.group_concat)
    place = row.day - bindparam("since", type_=Integer) + 1
    if long:
        place = case((place >= _SURROGATES.start, place + len(_SURROGATES)), else_=place)
    found = joined(character(place).concat(character(_number_of_row(held))), "")
    query = select(row.series_id, found).select_from(held.rows.source).where(held.rows.asked)
    return query.group_by(row.series_id)


def _number_of_row(held: Held) -> ColumnElement[int]:
    """Return the number of the standing of a row, as `_number_of` does."""
    availability = case(
        *((row.availability == each.value, place) for place, each in enumerate(AVAILABILITIES)), else_=0
    )
    attempt = case(
        *((row.attempt_outcome == each.value, place) for place, each in enumerate(ATTEMPTS) if each),
        else_=ATTEMPTS.index(None),
    )
    # Nearly all rows: what else would be asked of them need not be.
    plain = and_(
        row.availability == AVAILABILITIES[-1].value, row.attempt_outcome == AttemptOutcome.SUCCEEDED.value
    )
    beside = case((plain, _BESIDE - 1), else_=availability * len(ATTEMPTS) + attempt)
    return cell_of_row(held) * _BESIDE + beside + 1


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
