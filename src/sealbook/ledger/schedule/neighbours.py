"""Ready days that are claimed with their neighbours: ranges, each of which is one request (R-CTL-10)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Date,
    Select,
    and_,
    bindparam,
    literal_column,
    select,
    text,
)

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.types import UtcTimestamp
from sealbook.ledger.schedule.places import AT_PLACES, PLACE, encode_places
from sealbook.ledger.work.tables import FREE, work
from sealbook.model import PartitionKey
from sealbook.model.claims import Claim
from sealbook.model.ranges import DaysPerRequest, range_around, range_size, up_to_gap
from sealbook.model.work import WorkKind


class _Alike(NamedTuple):
    """What the days of a range have in common: besides customer and query the lane, tries and cost."""

    source: str
    customer_id: str
    query_name: str
    lane: str
    tries: int
    cost: int


class _Range(NamedTuple):
    """Days that are asked for together, and their places."""

    alike: _Alike
    days: Sequence[int]
    places: Sequence[object]


@dataclass
class Neighbours:
    """The ready days around those that were found, and what of them was taken."""

    ranges: DaysPerRequest
    heads: Mapping[object, tuple[_Alike, int]]
    """What was found, by its place."""
    days: Mapping[_Alike, dict[int, object]]
    """The place of each ready day that is not taken."""
    taken: set[object] = field(default_factory=set)
    """Places."""
    together: list[tuple[PartitionKey, ...]] = field(default_factory=list)
    """The ranges of more than one day that were taken."""

    def range_of(self, place: object, most: int) -> _Range | None:
        """Return the range of what was found at a place, of so many days at most; None if it has no days."""
        if place not in self.heads:
            return None
        alike, day = self.heads[place]
        own = self.days[alike]
        stretches = self.ranges.of(alike.source, alike.query_name)
        days = range_around(day, own, stretches, tries=alike.tries, most=most)
        return _Range(alike, days, [own[each] for each in days])

    def take(self, found: _Range) -> None:
        """Take a range: nothing else is asked for together with what is in it."""
        for day in found.days:
            del self.days[found.alike][day]
        self.taken.update(found.places)
        if len(found.days) > 1:
            keys = (PartitionKey(*found.alike[:3], date.fromordinal(day)) for day in found.days)
            self.together.append(tuple(keys))


def find_neighbours(
    connection: Connection, places: Sequence[object], ranges: DaysPerRequest, at: datetime
) -> Neighbours:
    """Return what is ready around the fetches at some places, as far as one request reaches."""
    dialect = connection.dialect.name
    heads = {
        place: (_Alike(*alike), day.toordinal())
        for place, day, *alike in map(
            tuple, connection.execute(_heads(dialect), encode_places(dialect, places)).all()
        )
    }
    days: dict[_Alike, dict[int, object]] = defaultdict(dict)
    for place, (alike, day) in heads.items():
        days[alike][day] = place
    windows = encode_rows(_windows(days, ranges))
    rows = connection.execute(_neighbours(dialect), {**windows, "at": at}).all()
    for place, day, *common in map(tuple, rows):
        days[_Alike(*common)][day.toordinal()] = place
    return Neighbours(ranges, heads, days)


def _windows(days: Mapping[_Alike, Iterable[int]], ranges: DaysPerRequest) -> Iterator[dict[str, object]]:
    """Yield the days that one request may reach from those that were found, none of them twice."""
    for alike, own in days.items():
        stretches = ranges.of(alike.source, alike.query_name)
        reached = 0
        for day in sorted(own):
            reach = range_size(day, stretches, alike.tries) - 1
            first, last = max(day - reach, reached + 1), day + reach
            if reach and first <= last:
                span = {"first": date.fromordinal(first), "last": date.fromordinal(last)}
                yield {**alike._asdict(), **span}
                reached = last


_ALIKE = [work.c[name] for name in _Alike._fields]


@cache
def _heads(dialect: str) -> Select[Any]:
    return _places_and_days(dialect).where(text(AT_PLACES[dialect]))


@cache
def _neighbours(dialect: str) -> Select[Any]:
    names = [Column(each.name, each.type) for each in _ALIKE]
    windows = given_rows(dialect, [*names, Column("first", Date), Column("last", Date)])
    within = and_(
        *(each == windows.c[each.name] for each in _ALIKE),
        work.c.logical_date >= windows.c.first,
        work.c.logical_date <= windows.c.last,
    )
    ready = work.c.ready_at <= bindparam("at", type_=UtcTimestamp)
    fetches = work.c.kind == WorkKind.FETCH.value
    rows = _places_and_days(dialect).select_from(windows).join(work, within)
    return rows.where(fetches, ready, literal_column(FREE, Boolean))


def _places_and_days(dialect: str) -> Select[Any]:
    return select(literal_column(PLACE[dialect]), work.c.logical_date, *_ALIKE)


def price(
    claims: Iterable[Claim], together: Iterable[Sequence[PartitionKey]]
) -> tuple[list[Claim], list[Claim]]:
    """Have a range cost what its first day does; return that, and what is to be given back.

    Of a range that others have torn apart, because they were just writing some of it, the first part is kept:
    what comes after it would be one more request.
    """
    by_key = {claim.key: claim for claim in claims}
    back: list[Claim] = []
    for keys in together:
        held = [key for key in keys if key in by_key]
        kept = up_to_gap(held)
        back += (by_key.pop(key) for key in held[len(kept) :])
        by_key.update({key: by_key[key]._replace(requests=0) for key in kept[1:]})
    return list(by_key.values()), back
