"""The days of a series as few spans, within each of which the same is expected of every day.

What is due, late or settled depends on the end of a day in its time zone and on the policy. Both change
seldom from day to day, so SQL needs a few numbers for a span, and no calendar.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from sealbook.ledger.status.tables import day_number, day_of
from sealbook.model.freshness import Freshness, day_end, last_ended
from sealbook.model.universe import EarlierZone

FOREVER = 10_000_000
"""A day number beyond any that there is; its negative is before any."""

_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)


class Stretch(NamedTuple):
    """Consecutive days, by their numbers, of which the same is expected.

    The times are microseconds from the beginning of each day in UTC: a day that was not materialized at
    `late_before` or later is late, at `settled_from` or later it is settled.
    """

    first: int
    last: int
    expected: bool
    due: bool
    late_before: int | None = None
    settled_from: int | None = None

    @property
    def days(self) -> int:
        """How many days."""
        return self.last - self.first + 1


@lru_cache(maxsize=4_096)  # accounts of one zone and first day share it
def stretches(
    freshness: Freshness | None,
    zone: tzinfo,
    earlier: tuple[EarlierZone, ...],
    days: tuple[date, date] | None,
    now: datetime,
) -> tuple[Stretch, ...]:
    """Cut all days, from the first to the last, into stretches; `days` are those that are expected."""
    if days is None:
        return (Stretch(-FOREVER, FOREVER, expected=False, due=False),)
    first, last = map(day_number, days)
    found = [Stretch(-FOREVER, first - 1, expected=False, due=False)]
    begin = first
    for end, held in (*((day_number(each.before) - 1, each.zone) for each in earlier), (last, zone)):
        found += _of_zone(freshness, held, begin, min(end, last), now)
        begin = max(begin, end + 1)
    found.append(Stretch(last + 1, FOREVER, expected=False, due=False))
    return tuple(each for each in found if each.first <= each.last)


def _of_zone(
    freshness: Freshness | None, zone: tzinfo, first: int, last: int, now: datetime
) -> Iterator[Stretch]:
    """Cut the days of one time zone: those that are due, and the rest."""
    points = freshness.due if freshness is not None else (timedelta(),)
    due_until = min(last, day_number(last_ended(now - points[0], zone)))
    if first <= due_until:
        yield from _due(freshness, zone, first, due_until, now)
    yield Stretch(max(first, due_until + 1), last, expected=True, due=False)


def _due(
    freshness: Freshness | None, zone: tzinfo, first: int, last: int, now: datetime
) -> Iterator[Stretch]:
    points = freshness.due if freshness is not None else (timedelta(),)
    lag = freshness.max_lag if freshness is not None else None
    # Of the days up to the first of these the deadline of the last point has passed, and so on backwards.
    passed = (
        [] if lag is None else [day_number(last_ended(now - point - lag, zone)) for point in reversed(points)]
    )
    offsets = list(_offsets(zone, first, last))
    starts = {first, *(day + 1 for day in passed), *(day for day, _ in offsets)}
    cuts = sorted(each for each in starts if first <= each <= last)
    for begin, end in pairwise([*cuts, last + 1]):
        _, over = offsets[bisect_right(offsets, begin, key=lambda each: each[0]) - 1]
        deadlines = zip(passed, reversed(points), strict=False)  # without a policy there is none
        counting = next((point for day, point in deadlines if begin <= day), None)
        yield Stretch(
            begin,
            end - 1,
            expected=True,
            due=True,
            late_before=None if counting is None else over + counting // _MICROSECOND,
            settled_from=over + points[-1] // _MICROSECOND,
        )


def _offsets(zone: tzinfo, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield from which day on days are over how long after they begin in UTC, as far as that changes."""
    before = None
    for year in range(day_of(first).year, day_of(last).year + 1):
        for start, over in _offsets_of_year(zone, year):
            if over != before:
                before = over
                yield start, over


@lru_cache(maxsize=4_096)
def _offsets_of_year(zone: tzinfo, year: int) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    day = date(year, 1, 1)
    while day.year == year:
        begins = datetime.combine(day, time(), UTC)
        over = (day_end(day, zone) - begins) // _MICROSECOND
        if not found or found[-1][1] != over:
            found.append((day_number(day), over))
        day += _DAY
    return tuple(found)
