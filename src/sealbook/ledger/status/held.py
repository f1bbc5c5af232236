"""Rows of partition status held against what is expected of them, in SQL (R-PST-3, R-PST-4, R-PST-5).

One statement holds the rows of any number of queries: what differs from one to the next is given with each
series. The pure functions of the model say the same of one partition; a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Integer,
    and_,
    bindparam,
    case,
    func,
    literal,
    not_,
    null,
    or_,
    select,
)

from sealbook.ledger.status.given import NEVER, NONE, GivenRows, row
from sealbook.ledger.status.given_arrays import one_of
from sealbook.ledger.status.giving import rows_given
from sealbook.ledger.status.tables import MICROSECONDS_A_DAY, partition_status
from sealbook.model.display import Display
from sealbook.model.staleness import StaleCode
from sealbook.model.status import AttemptOutcome, Availability

DISPLAYS = tuple(Display)
REASONS = tuple(StaleCode)

MATERIALIZED = row.materialized_at.is_not(None)
FAILED = row.attempt_outcome == AttemptOutcome.FAILED.value
FAILED_SINCE = and_(FAILED, row.attempt_at > row.materialized_at)
READABLE = row.availability.in_([each.value for each in Availability if each.readable])


class Bit(IntEnum):
    """The places of bits in the number of a row: all that counts about it, to be grouped by."""

    REASONS = 0
    MATERIALIZED = 5
    READABLE = 6
    OLDER = 7
    FAILED = 8
    FAILED_SINCE = 9
    NOT_FETCHED = 10
    DUE = 11
    PAST_DEADLINE = 12
    ASSET = 13


_LATE, _CHANGED, _CODE_CHANGED, _UNKNOWN, _CODE_UNKNOWN = (1 << place for place in range(len(REASONS)))


class Shape(NamedTuple):
    """How many upstreams a series has at most: partitions of one day, of several days, of all customers."""

    days: int = 0
    windows: int = 0
    gathered: int = 0
    keyed: bool = False
    """Whether single partitions are asked for."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What is given about a series, beside where its upstreams lie: a number for each name."""
        plain = ("series_id", "number", "profile", "first", "last", "due_until", "validator_id", "contract")
        return (*plain, *self._upstreams())

    def _upstreams(self) -> Iterator[str]:
        for place in range(self.days):
            yield from (f"{name}_{place}" for name in ("above", "above_first", "above_last", "distance"))
        for place in range(self.windows):
            yield from (f"window{name}_{place}" for name in ("", "_first", "_last", "_begin", "_end"))
        for place in range(self.gathered):
            yield f"link_{place}"


@dataclass(frozen=True, slots=True)
class Held:
    """The rows that are asked for, and what is true of each."""

    rows: GivenRows
    expected: ColumnElement[bool]
    due: ColumnElement[bool]
    reasons: ColumnElement[int]
    """Those that hold, as bits: the first of StaleCode is the lowest."""
    settled: ColumnElement[bool]
    upstream_changed_at: ColumnElement[int]
    """When the first upstream changed, those aside that are gathered of all customers."""

    @property
    def late(self) -> ColumnElement[bool]:
        """Whether a deadline has passed that the partition was not materialized for."""
        past_deadline = self.rows.late_before > -NEVER
        return and_(past_deadline, or_(not_(MATERIALIZED), _since_midnight() < self.rows.late_before))

    @property
    def display(self) -> ColumnElement[int]:
        """The display status, by its place in DISPLAYS."""
        place = DISPLAYS.index
        return case(
            (not_(MATERIALIZED), place(Display.NEVER_MATERIALIZED)),
            (not_(READABLE), place(Display.WITHDRAWN)),
            (FAILED_SINCE, place(Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED)),
            (self.reasons != 0, place(Display.STALE)),
            else_=place(Display.MATERIALIZED),
        )


@cache
def hold(dialect: str, shape: Shape) -> Held:
    """Hold the rows of series that have upstreams of this shape."""
    rows = rows_given(dialect, shape.columns, shape.gathered, keyed=shape.keyed)
    own = rows.own
    expected = and_(row.day >= own("first"), row.day <= own("last"))
    above: list[_Above] = []
    for place in range(shape.days):
        link, source = _one_day(dialect, rows, place)
        rows = replace(rows, source=source)
        above.append(link)
    above += [_window(dialect, rows, place) for place in range(shape.windows)]
    upstreams: ColumnElement[int] | None = None
    for bits in (*(each.bits for each in above), *(_gathered(*each) for each in rows.gathered)):
        upstreams = bits if upstreams is None else upstreams.bitwise_or(bits)
    reasons = case((_since_midnight() < rows.late_before, _LATE), else_=0) + _code_bits(rows)
    if upstreams is not None:
        reasons = reasons + case((and_(expected, MATERIALIZED), upstreams), else_=0)
    return Held(
        rows=rows,
        expected=expected,
        due=and_(row.day >= own("first"), row.day <= own("due_until")),
        reasons=reasons,
        settled=func.coalesce(_since_midnight() >= rows.settled_from, False),
        upstream_changed_at=_earliest([each.changed_at for each in above]),
    )


def _since_midnight() -> ColumnElement[int]:
    """Return how long after its day had begun in UTC a partition was materialized."""
    return row.materialized_at - row.day * literal(MICROSECONDS_A_DAY, BigInteger)


def _code_bits(rows: GivenRows) -> ColumnElement[int]:
    """Return the reason that lies in the contract, if it does; most rows have the very validator of now."""
    contract = func.coalesce(rows.contract, NONE)
    return case(
        (row.validator_id == rows.own("validator_id"), 0),
        (or_(rows.own("contract") == NONE, not_(MATERIALIZED)), 0),
        (contract == NONE, _CODE_UNKNOWN),
        (contract != rows.own("contract"), _CODE_CHANGED),
        else_=0,
    )


class _Above(NamedTuple):
    """What an upstream means for a row that is expected: its bits, and since when it has changed."""

    bits: ColumnElement[int]
    changed_at: ColumnElement[int]


def _one_day(dialect: str, rows: GivenRows, place: int) -> tuple[_Above, FromClause]:
    """Return what an upstream of one day means for a row, and the rows with what that needs."""
    above = partition_status.alias(f"above_{place}")
    at = above.c.materialized_at
    series, first, last, distance = (
        rows.own(f"{name}_{place}") for name in ("above", "above_first", "above_last", "distance")
    )
    day = row.day + distance
    wanted = and_(day >= first, day <= last)
    same = and_(above.c.series_id == series, above.c.day == day)
    bits = case((at.is_(None), _UNKNOWN), (at > row.materialized_at, _CHANGED), else_=0)
    changed_at = case((at > row.materialized_at, at))
    if dialect == "postgresql":  # it reads all that is above once, faster than row by row
        since, until = (bindparam(f"above_{bound}", type_=Integer) for bound in ("since", "until"))
        read = and_(one_of("above_ids", above.c.series_id), above.c.day >= since, above.c.day <= until)
        joined = rows.source.outerjoin(above, and_(same, read))
        return _Above(case((wanted, bits), else_=0), case((wanted, changed_at))), joined

    def find(what: ColumnElement[Any]) -> ColumnElement[Any]:
        return select(what).where(same).correlate(*rows.tables).scalar_subquery()

    found = case((wanted, func.coalesce(find(bits), _UNKNOWN)), else_=0)
    return _Above(found, case((wanted, find(changed_at)))), rows.source


def _window(dialect: str, rows: GivenRows, place: int) -> _Above:
    above = partition_status.alias(f"window_{place}")
    at = above.c.materialized_at
    series, first, last, begin, end = (
        rows.own(f"window{name}_{place}") for name in ("", "_first", "_last", "_begin", "_end")
    )
    greatest, least = (func.greatest, func.least) if dialect == "postgresql" else (func.max, func.min)
    since, until = greatest(row.day + begin, first), least(row.day + end, last)

    def find(what: ColumnElement[Any]) -> ColumnElement[Any]:
        query = select(what).where(above.c.series_id == series, above.c.day >= since, above.c.day <= until)
        return query.correlate(*rows.tables).scalar_subquery()

    unknown = case((func.count(at) < until - since + 1, _UNKNOWN), else_=0)
    changed = case((func.max(at) > row.materialized_at, _CHANGED), else_=0)
    wanted = first <= last
    return _Above(
        bits=case((wanted, find(unknown + changed)), else_=0),
        changed_at=case((wanted, find(func.min(case((at > row.materialized_at, at)))))),
    )


def _gathered(latest: ColumnElement[int], unknown: ColumnElement[int]) -> ColumnElement[int]:
    lacking = case((unknown != 0, _UNKNOWN), else_=0)
    return lacking + case((latest > row.materialized_at, _CHANGED), else_=0)


def _earliest(times: list[ColumnElement[int]]) -> ColumnElement[int]:
    """Return the earliest of some times that may be null."""
    if not times:
        return null().cast(BigInteger)
    earliest, *others = times
    for each in others:
        earliest = case((earliest.is_(None), each), (each < earliest, each), else_=earliest)
    return earliest
