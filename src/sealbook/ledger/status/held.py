"""Rows of partition status held against what is expected of them, in SQL (R-PST-3, R-PST-4, R-PST-5).

One statement holds the rows of any number of queries: what differs from one to the next is given with each
series. The pure functions of the model say the same of one partition; a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    FromClause,
    Integer,
    Text,
    and_,
    case,
    false,
    func,
    literal,
    not_,
    null,
    or_,
    select,
)

from sealbook.ledger.states.tables import validator
from sealbook.ledger.status.given import GivenTable
from sealbook.ledger.status.tables import MICROSECONDS_A_DAY, partition_status
from sealbook.model.display import Display
from sealbook.model.staleness import StaleCode
from sealbook.model.status import AttemptOutcome, Availability

DISPLAYS = tuple(Display)
REASONS = tuple(StaleCode)

row = partition_status.c
MATERIALIZED = row.materialized_at.is_not(None)
FAILED = row.attempt_outcome == AttemptOutcome.FAILED.value
READABLE = row.availability.in_([each.value for each in Availability if each.readable])


class Shape(NamedTuple):
    """How many upstreams a series has at most: partitions of one day, of several days, of all customers."""

    days: int = 0
    windows: int = 0
    gathered: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """The rows that are asked for, and what is true of each; `source` is what to select from."""

    source: FromClause
    series: FromClause
    expected: ColumnElement[bool]
    due: ColumnElement[bool]
    past_deadline: ColumnElement[bool]
    settled: ColumnElement[bool]
    reasons: tuple[ColumnElement[bool], ...]
    """In the order of StaleCode."""
    upstream_changed_at: ColumnElement[int]
    """When the first upstream changed, those aside that are gathered of all customers."""

    @property
    def stale(self) -> ColumnElement[bool]:
        """Whether any reason holds."""
        return or_(*self.reasons)

    @property
    def late(self) -> ColumnElement[bool]:
        """Whether a deadline has passed that the partition was not materialized for."""
        return and_(self.past_deadline, or_(not_(MATERIALIZED), self.reasons[0]))

    @property
    def display(self) -> ColumnElement[int]:
        """The display status, by its place in DISPLAYS."""
        place = DISPLAYS.index
        return case(
            (not_(MATERIALIZED), place(Display.NEVER_MATERIALIZED)),
            (not_(READABLE), place(Display.WITHDRAWN)),
            (FAILED_SINCE, place(Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED)),
            (self.stale, place(Display.STALE)),
            else_=place(Display.MATERIALIZED),
        )


FAILED_SINCE = and_(FAILED, row.attempt_at > row.materialized_at)
"""The last attempt failed, after the materialization."""


@cache
def series_table(shape: Shape) -> GivenTable:
    """Return the table of series that are asked for, for a span of days each.

    Beside how far they are expected and due it says by which validator they should be accepted, and where
    their upstreams lie: their series, how far those are expected, and which days count from a row's own.
    """
    plain = ("series_id", "asset", "profile", "since", "until", "first", "last", "due_until", "validator_id")
    return GivenTable(
        "series",
        [
            *(Column(name, Integer) for name in plain),
            Column("code", Text),
            *(Column(name, Integer) for name in _upstream_columns(shape)),
        ],
    )


def _upstream_columns(shape: Shape) -> Iterator[str]:
    for place in range(shape.days):
        yield from (f"{name}_{place}" for name in ("above", "above_first", "above_last", "distance"))
    for place in range(shape.windows):
        yield from (f"window{name}_{place}" for name in ("", "_first", "_last", "_begin", "_end"))
    for place in range(shape.gathered):
        yield f"link_{place}"


STRETCHES = GivenTable(
    "stretches",
    [
        Column("profile", Integer),
        Column("begin", Integer),
        Column("end", Integer),
        Column("late_before", BigInteger),
        Column("settled_from", BigInteger),
    ],
)
"""The days of a profile. On PostgreSQL, which looks days up, those that are due, one by one."""

GATHERED = GivenTable(
    "gathered",
    [
        Column("link", Integer),
        Column("day", Integer),
        Column("latest", BigInteger),
        Column("unknown", Boolean),
    ],
)
"""What upstreams of all customers add up to for a day: the latest materialization, and whether one lacks."""


@cache
def hold(dialect: str, shape: Shape) -> Held:
    """Hold the rows of series that have upstreams of this shape; the three tables are its parameters."""
    series, source, late_before, settled_from = _places(dialect, shape)
    judged = case((row.validator_id != func.coalesce(series.c.validator_id, -1), row.validator_id))
    source = source.outerjoin(validator, validator.c.id == judged)
    expected = and_(row.day >= series.c.first, row.day <= series.c.last)
    since_midnight = row.materialized_at - row.day * literal(MICROSECONDS_A_DAY, BigInteger)
    links: list[_Link] = []
    for place in range(shape.days):
        link, source = _to_one_day(series, source, place)
        links.append(link)
    links += [_to_window(dialect, series, place) for place in range(shape.windows)]
    for place in range(shape.gathered):
        link, source = _to_all(dialect, series, source, place)
        links.append(link)
    coded = and_(MATERIALIZED, series.c.code.is_not(None))
    other = and_(judged.is_not(None), validator.c.contract_hash.is_not(None))
    unknown = or_(row.validator_id.is_(None), and_(judged.is_not(None), validator.c.contract_hash.is_(None)))
    return Held(
        source=source,
        series=series,
        expected=expected,
        due=and_(row.day >= series.c.first, row.day <= series.c.due_until),
        past_deadline=late_before.is_not(None),
        settled=func.coalesce(since_midnight >= settled_from, false()),
        reasons=(
            since_midnight < late_before,
            and_(expected, or_(false(), *(link.changed for link in links))),
            and_(coded, other, validator.c.contract_hash != series.c.code),
            and_(expected, MATERIALIZED, or_(false(), *(link.unknown for link in links))),
            and_(coded, unknown),
        ),
        upstream_changed_at=_earliest([each.since for each in links if each.since is not None]),
    )


def _places(
    dialect: str, shape: Shape
) -> tuple[FromClause, FromClause, ColumnElement[int], ColumnElement[int]]:
    """Return the series, the rows that are asked for, and the two times that count for each of them."""
    series, stretch = series_table(shape).table(dialect), STRETCHES.table(dialect)
    asked = and_(row.series_id == series.c.series_id, row.day >= series.c.since, row.day <= series.c.until)
    if dialect == "postgresql":  # reads the table as it lies, and looks the rest up
        of_day = and_(stretch.c.profile == series.c.profile, stretch.c.begin == row.day)
        source = partition_status.join(series, asked).outerjoin(stretch, of_day)
        return series, source, stretch.c.late_before, stretch.c.settled_from
    # SQLite reads the table by its key, stretch by stretch.
    begin = func.max(series.c.since, stretch.c.begin).label("begin")
    end = func.min(series.c.until, stretch.c.end).label("end")
    place = (
        select(series, begin, end, stretch.c.late_before, stretch.c.settled_from)
        .select_from(series.join(stretch, stretch.c.profile == series.c.profile))
        .cte("place")
        .prefix_with("MATERIALIZED")
    )
    within = and_(row.series_id == place.c.series_id, row.day >= place.c.begin, row.day <= place.c.end)
    return place, place.join(partition_status, within), place.c.late_before, place.c.settled_from


@dataclass(frozen=True, slots=True)
class _Link:
    """What an upstream means for a row; `since` is when it changed."""

    changed: ColumnElement[bool]
    unknown: ColumnElement[bool]
    since: ColumnElement[int] | None = None


def _to_one_day(series: FromClause, source: FromClause, place: int) -> tuple[_Link, FromClause]:
    above = partition_status.alias(f"above_{place}")
    of = series.c
    day = row.day + of[f"distance_{place}"]
    wanted = and_(day >= of[f"above_first_{place}"], day <= of[f"above_last_{place}"])
    same = and_(above.c.series_id == of[f"above_{place}"], above.c.day == day, wanted)
    changed = above.c.materialized_at > row.materialized_at
    link = _Link(
        changed=changed,
        unknown=and_(wanted, above.c.materialized_at.is_(None)),
        since=case((changed, above.c.materialized_at)),
    )
    return link, source.outerjoin(above, same)


def _to_window(dialect: str, series: FromClause, place: int) -> _Link:
    above = partition_status.alias(f"window_{place}")
    of = series.c
    greatest, least = (func.greatest, func.least) if dialect == "postgresql" else (func.max, func.min)
    begin = greatest(row.day + of[f"window_begin_{place}"], of[f"window_first_{place}"])
    end = least(row.day + of[f"window_end_{place}"], of[f"window_last_{place}"])
    wanted = of[f"window_{place}"].is_not(None)

    def find(what: ColumnElement[Any], *also: ColumnElement[bool]) -> ColumnElement[Any]:
        of_window = (above.c.series_id == of[f"window_{place}"], above.c.day >= begin, above.c.day <= end)
        query = select(what).where(*of_window, *also).correlate(series, partition_status)
        return query.scalar_subquery()

    at = above.c.materialized_at
    return _Link(
        changed=and_(wanted, find(func.max(at)) > row.materialized_at),
        unknown=and_(wanted, end - begin + 1 > find(func.count(at))),
        since=case((wanted, find(func.min(at), at > row.materialized_at))),
    )


def _to_all(dialect: str, series: FromClause, source: FromClause, place: int) -> tuple[_Link, FromClause]:
    gathered = GATHERED.table(dialect).alias(f"gathered_{place}")
    of_day = and_(gathered.c.link == series.c[f"link_{place}"], gathered.c.day == row.day)
    link = _Link(gathered.c.latest > row.materialized_at, gathered.c.unknown)
    return link, source.outerjoin(gathered, of_day)


def _earliest(times: Sequence[ColumnElement[int]]) -> ColumnElement[int]:
    """Return the earliest of some times that may be null."""
    if not times:
        return null().cast(BigInteger)
    earliest, *others = times
    for each in others:
        earliest = case((earliest.is_(None), each), (each < earliest, each), else_=earliest)
    return earliest
