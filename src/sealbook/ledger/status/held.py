"""Rows of partition status held against what is expected of them, in SQL (R-PST-3, R-PST-4, R-PST-5).

A statement is about one query. Its parameters are the series that are asked for, the stretches of their days,
and the same of the partitions that they are made of; the tables are read once, in the order of their keys.
The pure functions of the model say the same of one partition: a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    case,
    false,
    func,
    literal,
    not_,
    or_,
    select,
)

from sealbook.ledger.db.bulk import given_rows
from sealbook.ledger.states.tables import validator
from sealbook.ledger.status.tables import MICROSECONDS_A_DAY, partition_status
from sealbook.model.display import Display
from sealbook.model.staleness import StaleCode
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.universe import Upstream

DISPLAYS = tuple(Display)
REASONS = tuple(StaleCode)

_row = partition_status.c
_FAILED = _row.attempt_outcome == AttemptOutcome.FAILED.value
_READABLE = or_(
    _row.availability == Availability.PUBLISHED.value, _row.availability == Availability.BEHIND.value
)


@dataclass(frozen=True, slots=True)
class Held:
    """The rows of a query's series, and what is true of each; `source` is what to select from."""

    source: FromClause
    series: FromClause
    stretch: FromClause
    late: ColumnElement[bool]
    settled: ColumnElement[bool]
    reasons: tuple[ColumnElement[bool], ...]
    """In the order of StaleCode."""
    upstream_changed_at: ColumnElement[int]

    @property
    def expected(self) -> ColumnElement[bool]:
        return self.stretch.c.expected

    @property
    def due(self) -> ColumnElement[bool]:
        return self.stretch.c.due

    @property
    def stale(self) -> ColumnElement[bool]:
        """Whether any reason holds."""
        return or_(*self.reasons)

    @property
    def reason_bits(self) -> ColumnElement[int]:
        """The reasons that hold, as the bits of a number."""
        bits: ColumnElement[int] = case((self.reasons[0], 1), else_=0)
        for place, reason in enumerate(self.reasons[1:], 1):
            bits = bits + case((reason, 1 << place), else_=0)
        return bits

    def display(self, bits: ColumnElement[int]) -> ColumnElement[int]:
        """The display status, by its place in DISPLAYS; `bits` are those of the reasons."""
        place = DISPLAYS.index
        return case(
            (_row.materialized_at.is_(None), place(Display.NEVER_MATERIALIZED)),
            (not_(_READABLE), place(Display.WITHDRAWN)),
            (
                and_(_FAILED, _row.attempt_at > _row.materialized_at),
                place(Display.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED),
            ),
            (bits != 0, place(Display.STALE)),
            else_=place(Display.MATERIALIZED),
        )


def hold(dialect: str, upstreams: Sequence[Upstream], *, coded: bool) -> Held:
    """Hold the rows of a query's series, by its upstreams, and by its contract if one is in force.

    Parameters: `series`, `stretches`, `code`; and for upstreams of all customers `gathered_N`, `wanted_N`.
    """
    series, stretch, rows = _places(dialect, upstreams)
    source: FromClause = rows.outerjoin(validator, validator.c.id == _row.validator_id)
    materialized = _row.materialized_at.is_not(None)
    after_midnight = _row.materialized_at - _row.day * literal(MICROSECONDS_A_DAY, BigInteger)
    late = after_midnight < stretch.c.late_before
    links = []
    for place, upstream in enumerate(upstreams):
        link, source = _link(dialect, place, upstream, series, source)
        links.append(link)
    code = bindparam("code", type_=Text)
    known = validator.c.contract_hash.is_not(None)
    reasons: tuple[ColumnElement[bool], ...] = (
        late,
        and_(stretch.c.expected, or_(false(), *(link.changed for link in links))),
        and_(materialized, known, validator.c.contract_hash != code) if coded else false(),
        and_(materialized, stretch.c.expected, or_(false(), *(link.unknown for link in links))),
        and_(materialized, not_(known)) if coded else false(),
    )
    return Held(
        source=source,
        series=series,
        stretch=stretch,
        late=and_(stretch.c.late_before.is_not(None), or_(not_(materialized), late)),
        settled=after_midnight >= stretch.c.settled_from,
        reasons=reasons,
        upstream_changed_at=_earliest([link.changed_at for link in links]),
    )


def due_rows(dialect: str) -> tuple[FromClause, ColumnElement[bool]]:
    """Return the rows that are asked for, and the condition that they are due.

    Parameters: `series`, `stretches`.
    """
    _, stretch, rows = _places(dialect)
    return rows, stretch.c.due


def _places(dialect: str, upstreams: Sequence[Upstream] = ()) -> tuple[FromClause, FromClause, FromClause]:
    series = _table(dialect, "series", _series_columns(upstreams))
    stretch = _table(dialect, "stretches", _STRETCH)
    within = and_(
        _row.series_id == series.c.series_id, _row.day >= stretch.c.first, _row.day <= stretch.c.last
    )
    of_profile = stretch.c.profile == series.c.profile
    return series, stretch, series.join(stretch, of_profile).join(partition_status, within)


@dataclass(frozen=True, slots=True)
class _Link:
    """What an upstream means for a row."""

    changed: ColumnElement[bool]
    unknown: ColumnElement[bool]
    changed_at: ColumnElement[int]


def _link(
    dialect: str, place: int, upstream: Upstream, series: FromClause, source: FromClause
) -> tuple[_Link, FromClause]:
    if upstream.all_customers:
        return _link_to_all(dialect, place, source)
    above = partition_status.alias(f"above_{place}")
    names = upstream_names(place)
    number, first, last = (series.c[name] for name in names)
    if upstream.first == upstream.last:
        day = _row.day + upstream.first if upstream.first else _row.day
        source = source.outerjoin(
            above, and_(above.c.series_id == number, above.c.day == day, day >= first, day <= last)
        )
        changed = above.c.materialized_at > _row.materialized_at
        return (
            _Link(
                changed=changed,
                unknown=and_(day >= first, day <= last, above.c.materialized_at.is_(None)),
                changed_at=case((changed, above.c.materialized_at)),
            ),
            source,
        )
    begin = _greatest(dialect, _row.day + upstream.first, first)
    end = _least(dialect, _row.day + upstream.last, last)
    within = and_(above.c.series_id == number, above.c.day >= begin, above.c.day <= end)

    def above_row(what: ColumnElement[Any], *also: ColumnElement[bool]) -> ColumnElement[Any]:
        query = select(what).where(within, *also).correlate(series, partition_status)
        return query.scalar_subquery()

    later = above.c.materialized_at > _row.materialized_at
    return (
        _Link(
            changed=above_row(func.max(above.c.materialized_at)) > _row.materialized_at,
            unknown=end - begin + 1 > above_row(func.count(above.c.materialized_at)),
            changed_at=above_row(func.min(above.c.materialized_at), later),
        ),
        source,
    )


def _link_to_all(dialect: str, place: int, source: FromClause) -> tuple[_Link, FromClause]:
    """Gather the partitions of all customers by the day that is made of them, once for all rows."""
    gathered = _table(dialect, f"gathered_{place}", _GATHERED)
    wanted = _table(dialect, f"wanted_{place}", _WANTED)
    above = partition_status.alias(f"above_{place}")
    found = (
        select(
            (above.c.day - gathered.c.distance).label("day"),
            func.count(above.c.materialized_at).label("known"),
            func.max(above.c.materialized_at).label("latest"),
        )
        .select_from(gathered)
        .join(
            above,
            and_(
                above.c.series_id == gathered.c.series_id,
                above.c.day >= gathered.c.first,
                above.c.day <= gathered.c.last,
            ),
        )
        .group_by(above.c.day - gathered.c.distance)
        .cte(f"found_{place}")
    )
    by_day = (
        select(wanted.c.day, wanted.c.count, found.c.known, found.c.latest)
        .select_from(wanted.outerjoin(found, found.c.day == wanted.c.day))
        .cte(f"by_day_{place}")
        .prefix_with("MATERIALIZED")
    )
    source = source.outerjoin(by_day, by_day.c.day == _row.day)
    later = above.c.materialized_at > _row.materialized_at
    earliest = (
        select(func.min(above.c.materialized_at))
        .select_from(gathered)
        .join(
            above,
            and_(above.c.series_id == gathered.c.series_id, above.c.day == _row.day + gathered.c.distance),
        )
        .where(above.c.day >= gathered.c.first, above.c.day <= gathered.c.last, later)
        .correlate(partition_status)
        .scalar_subquery()
    )
    changed = by_day.c.latest > _row.materialized_at
    link = _Link(
        changed=changed,
        unknown=by_day.c.count > func.coalesce(by_day.c.known, 0),
        changed_at=case((changed, earliest)),
    )
    return link, source


def _earliest(times: Sequence[ColumnElement[int]]) -> ColumnElement[int]:
    """Return the earliest of some times that may be null."""
    earliest: ColumnElement[int] | None = None
    for each in times:
        if earliest is None:
            earliest = each
        else:
            earliest = case((earliest.is_(None), each), (each < earliest, each), else_=earliest)
    return earliest if earliest is not None else bindparam(None, None, type_=BigInteger)


def _greatest(dialect: str, *values: ColumnElement[int]) -> ColumnElement[int]:
    return func.greatest(*values) if dialect == "postgresql" else func.max(*values)


def _least(dialect: str, *values: ColumnElement[int]) -> ColumnElement[int]:
    return func.least(*values) if dialect == "postgresql" else func.min(*values)


def _table(dialect: str, parameter: str, columns: Sequence[Column[Any]]) -> CTE:
    """Return the rows of a parameter as a table that is made once."""
    rows: Select[Any] = select(given_rows(dialect, columns, parameter))
    return rows.cte(parameter).prefix_with("MATERIALIZED")


_STRETCH: list[Column[Any]] = [
    Column("profile", Integer),
    Column("first", Integer),
    Column("last", Integer),
    Column("expected", Boolean),
    Column("due", Boolean),
    Column("late_before", BigInteger),
    Column("settled_from", BigInteger),
]
_GATHERED = [
    Column("series_id", Integer),
    Column("first", Integer),
    Column("last", Integer),
    Column("distance", Integer),
]
_WANTED = [Column("day", Integer), Column("count", Integer)]


def _series_columns(upstreams: Sequence[Upstream]) -> list[Column[Any]]:
    return [
        Column("series_id", Integer),
        Column("profile", Integer),
        *(
            Column(name, Integer)
            for place, upstream in enumerate(upstreams)
            if not upstream.all_customers
            for name in upstream_names(place)
        ),
    ]


def upstream_names(place: int) -> tuple[str, str, str]:
    """Return what a series says of an upstream: its series, and the first and last day expected of that."""
    return f"above_{place}", f"above_first_{place}", f"above_last_{place}"
