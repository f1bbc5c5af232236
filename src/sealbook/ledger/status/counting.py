"""Counting partitions by what their status says, in SQL: one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, not_, or_, select

from sealbook.ledger.status.asking import Asked
from sealbook.ledger.status.gathering import gathered
from sealbook.ledger.status.held import (
    FAILED,
    FAILED_SINCE,
    MATERIALIZED,
    READABLE,
    REASONS,
    Held,
    Shape,
    hold,
    row,
)
from sealbook.ledger.status.tables import day_of
from sealbook.model.display import Display
from sealbook.model.partition_events import Stage
from sealbook.model.staleness import StaleCode
from sealbook.model.status import Availability
from sealbook.model.status_line import QueryCounts, StatusCounts
from sealbook.model.universe import AssetName


class _Group(NamedTuple):
    """So many rows of one query of which the same is true: the first fields, which are bits of a number."""

    reasons: tuple[bool, ...]
    materialized: bool
    readable: bool
    older: bool
    failed: bool
    failed_since: bool
    not_fetched: bool
    due: bool
    past_deadline: bool
    rows: int
    newest: int

    @classmethod
    def of(cls, number: int, rows: int, newest: int) -> _Group:
        bits = tuple(bool(number >> place & 1) for place in range(len(REASONS) + _FLAGS))
        return cls._make((bits[: len(REASONS)], *bits[len(REASONS) :], rows, newest))

    @property
    def availability(self) -> Availability:
        if self.readable:
            return Availability.BEHIND if self.older else Availability.PUBLISHED
        return Availability.HIDDEN if self.older else Availability.NONE

    @property
    def display(self) -> Display:
        if not self.materialized:
            return Display.NEVER_MATERIALIZED
        if not self.readable:
            return Display.WITHDRAWN
        if self.failed_since:
            return Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED
        return Display.STALE if any(self.reasons) else Display.MATERIALIZED

    @property
    def late(self) -> bool:
        return self.past_deadline and (self.reasons[0] or not self.materialized)


_FLAGS = len(_Group._fields) - 3


def count(connection: Connection, asked: Asked) -> StatusCounts:
    """Count what is asked for."""
    assets = asked.assets
    groups: dict[AssetName, list[_Group]] = {name: [] for name in assets}
    if any(each.number is not None for each in asked.series):
        dialect = connection.dialect.name
        parameters = asked.parameters(dialect) | gathered(connection, asked)
        for asset, *group in connection.execute(_query(dialect, asked.shape), parameters):
            groups[assets[asset]].append(_Group.of(*group))
    queries = {name: _of_query(name, asked, found) for name, found in groups.items()}
    missing = sum(each.missing for each in queries.values())
    displays = dict.fromkeys(Display, 0) | {Display.NEVER_MATERIALIZED: missing}
    availabilities = dict.fromkeys(Availability, 0) | {Availability.NONE: missing}
    reasons = dict.fromkeys(StaleCode, 0)
    for each in (group for found in groups.values() for group in found):
        displays[each.display] += each.rows
        availabilities[each.availability] += each.rows
        for code, holds in zip(REASONS, each.reasons, strict=True):
            reasons[code] += each.rows if holds else 0
    return StatusCounts(displays, availabilities, reasons, queries)


def _of_query(name: AssetName, asked: Asked, groups: list[_Group]) -> QueryCounts:
    series = [each for each in asked.series if each.asset == name]
    due = [each for each in groups if each.due]
    newest = max((each.newest for each in groups if each.readable), default=None)
    expected = sum(len(each.due) for each in series)
    past_deadline = sum(each.days_past_deadline for each in series)
    return QueryCounts(
        due=expected,
        readable=_rows(each for each in due if each.readable),
        behind=_rows(each for each in due if each.availability is Availability.BEHIND),
        failed=_rows(each for each in due if each.failed and not each.not_fetched),
        not_fetched=_rows(each for each in due if each.not_fetched),
        late=_rows(each for each in due if each.late)
        + past_deadline
        - _rows(each for each in due if each.past_deadline),
        missing=expected - _rows(due),
        newest_day=None if newest is None else day_of(newest),
    )


def _rows(groups: Iterable[_Group]) -> int:
    return sum(each.rows for each in groups)


@cache
def _query(dialect: str, shape: Shape) -> Select[Any]:
    held = hold(dialect, shape)
    number = _number(held)
    groups = (held.series.c.asset, number)
    return select(*groups, func.count(), func.max(row.day)).select_from(held.source).group_by(*groups)


def _number(held: Held) -> ColumnElement[int]:
    """Return what is true of a row as the bits of a number: that is grouped by faster than many columns."""
    published, none = Availability.PUBLISHED.value, Availability.NONE.value
    flags = [
        *held.reasons,
        MATERIALIZED,
        READABLE,
        not_(or_(row.availability == published, row.availability == none)),
        FAILED,
        FAILED_SINCE,
        and_(FAILED, row.attempt_stage == Stage.EXTRACT.value),
        held.due,
        held.past_deadline,
    ]
    number: ColumnElement[int] = case((flags[0], 1), else_=0)
    for place, flag in enumerate(flags[1:], 1):
        number = number + case((flag, 1 << place), else_=0)
    return number
