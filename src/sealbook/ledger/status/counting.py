"""Counting partitions by what their status says, in SQL: one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Executable, and_, case, func, literal, select

from sealbook.ledger.status.asking import Asked, Series
from sealbook.ledger.status.fetching import fetch
from sealbook.ledger.status.given import row
from sealbook.ledger.status.held import (
    FAILED,
    FAILED_SINCE,
    MATERIALIZED,
    READABLE,
    REASONS,
    Bit,
    Shape,
    hold,
)
from sealbook.ledger.status.tables import day_of
from sealbook.model.display import Display
from sealbook.model.partition_events import Stage
from sealbook.model.staleness import StaleCode
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.status_line import QueryCounts, StatusCounts


class _Group(NamedTuple):
    """So many rows of which the same is true, as the bits of a number say, and the last day of them."""

    number: int
    rows: int
    newest: int

    def has(self, bit: int) -> bool:
        """Say whether a bit is set."""
        return bool(self.number >> bit & 1)

    @property
    def asset(self) -> int:
        return self.number >> Bit.ASSET

    @property
    def reasons(self) -> Iterator[StaleCode]:
        return (code for place, code in enumerate(REASONS) if self.has(Bit.REASONS + place))

    @property
    def availability(self) -> Availability:
        if self.has(Bit.READABLE):
            return Availability.BEHIND if self.has(Bit.OLDER) else Availability.PUBLISHED
        return Availability.HIDDEN if self.has(Bit.OLDER) else Availability.NONE

    @property
    def display(self) -> Display:
        if not self.has(Bit.MATERIALIZED):
            return Display.NEVER_MATERIALIZED
        if not self.has(Bit.READABLE):
            return Display.WITHDRAWN
        if self.has(Bit.FAILED_SINCE):
            return Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED
        return Display.STALE if any(self.reasons) else Display.MATERIALIZED

    @property
    def late(self) -> bool:
        never = not self.has(Bit.MATERIALIZED)
        return self.has(Bit.PAST_DEADLINE) and (never or StaleCode.FRESHNESS_POLICY in self.reasons)


def count(connection: Connection, asked: Asked) -> StatusCounts:
    """Count what is asked for."""
    groups: list[_Group] = []
    if any(each.number is not None for each in asked.series):
        query = _query(connection.dialect.name, asked.shape)
        groups = [_Group(*each) for each in fetch(connection, query, asked)]
    queries = {
        name: _of_query(
            [each for each in asked.series if each.asset == name],
            [each for each in groups if each.asset == place],
        )
        for place, name in enumerate(asked.assets)
    }
    missing = sum(each.missing for each in queries.values())
    displays = dict.fromkeys(Display, 0) | {Display.NEVER_MATERIALIZED: missing}
    availabilities = dict.fromkeys(Availability, 0) | {Availability.NONE: missing}
    reasons = dict.fromkeys(StaleCode, 0)
    for group in groups:
        displays[group.display] += group.rows
        availabilities[group.availability] += group.rows
        for code in group.reasons:
            reasons[code] += group.rows
    return StatusCounts(displays, availabilities, reasons, queries)


def _of_query(series: list[Series], groups: list[_Group]) -> QueryCounts:
    due = [each for each in groups if each.has(Bit.DUE)]
    newest = max((each.newest for each in groups if each.has(Bit.READABLE)), default=None)
    expected = sum(len(each.due) for each in series)
    past_deadline = sum(each.days_past_deadline for each in series)
    untouched = past_deadline - _rows(each for each in due if each.has(Bit.PAST_DEADLINE))
    not_fetched = _rows(each for each in due if each.has(Bit.NOT_FETCHED))
    return QueryCounts(
        due=expected,
        readable=_rows(each for each in due if each.has(Bit.READABLE)),
        behind=_rows(each for each in due if each.availability is Availability.BEHIND),
        failed=_rows(each for each in due if each.has(Bit.FAILED)) - not_fetched,
        not_fetched=not_fetched,
        late=_rows(each for each in due if each.late) + untouched,
        missing=expected - _rows(due),
        newest_day=None if newest is None else day_of(newest),
    )


def _rows(groups: Iterable[_Group]) -> int:
    return sum(each.rows for each in groups)


@cache
def _query(dialect: str, shape: Shape) -> Executable:
    held = hold(dialect, shape)
    number = (held.rows.number + _standing() + held.reasons).label("row_number")
    if dialect != "postgresql":
        rows = select(number, func.count(), func.max(row.day)).select_from(held.rows.source)
        return rows.where(held.rows.asked).group_by("row_number")  # by its name: it is computed once
    # With a volatile column it stays a query of its own. Knowing nothing of its numbers, PostgreSQL takes
    # them for few, as they are: its workers count by themselves, and no rows are sorted.
    columns = (number, row.day, func.clock_timestamp())
    found = select(*columns).select_from(held.rows.source).where(held.rows.asked).subquery("found")
    groups = select(found.c.row_number, func.count(), func.max(found.c.day))
    return groups.group_by(found.c.row_number)


def _standing() -> ColumnElement[int]:
    """Return the bits that a row has by itself."""
    published, none = Availability.PUBLISHED.value, Availability.NONE.value
    flags = {
        Bit.MATERIALIZED: MATERIALIZED,
        Bit.READABLE: READABLE,
        Bit.OLDER: and_(row.availability != published, row.availability != none),
        Bit.FAILED: FAILED,
        Bit.FAILED_SINCE: FAILED_SINCE,
        Bit.NOT_FETCHED: and_(FAILED, row.attempt_stage == Stage.EXTRACT.value),
    }
    bits: ColumnElement[int] = literal(0)
    for bit, flag in flags.items():
        bits = bits + case((flag, 1 << bit), else_=0)
    # Nearly all rows: what else would be asked of them need not be.
    succeeded = row.attempt_outcome == AttemptOutcome.SUCCEEDED.value
    plain = and_(row.availability == published, succeeded, MATERIALIZED)
    return case((plain, (1 << Bit.MATERIALIZED) + (1 << Bit.READABLE)), else_=bits)
