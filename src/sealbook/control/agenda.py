"""What becomes ready when, in a simulation: days that end, days that are due again, retries, a backfill.

A partition is a number: that of its series times the days that there are, plus that of its day.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date, datetime, tzinfo
from heapq import heappop, heappush
from itertools import groupby
from math import ceil
from typing import NamedTuple

from sealbook.control.scenario import Opened, Scenario
from sealbook.model.freshness import day_end
from sealbook.model.keys import PartitionKey
from sealbook.model.ranges import count_ranges
from sealbook.model.work import Lane

Ready = tuple[Lane, int]
"""A partition, and the lane in which it is ready."""


class _Dawn(NamedTuple):
    """A day that becomes due for series whose days are due at the same moments."""

    day: int
    series: list[int]


class Agenda:
    """All that is to be done, by when it may be begun. Times are whole seconds since 1970."""

    def __init__(self, scenario: Scenario) -> None:
        self.series = scenario.series
        self.points = [scenario.due_points(each) for each in scenario.series]
        self.stretches = [scenario.ranges.of(each.source, each.query_name) for each in scenario.series]
        """How many days one request takes, series by series."""
        self.first_day = min((each.first for each in scenario.series), default=0)
        self.width = max((each.last for each in scenario.series), default=0) - self.first_day + 1
        self.now = int(scenario.start.timestamp())
        self._scenario = scenario
        self._ready_at: dict[int, int] = {}
        """Of what does not follow from its day: retries and refreshes."""
        self._backfill: dict[int, list[int]] = {}
        """Days of a series, the next one last: they become ready as those before them are begun."""
        self._timers: dict[int, list[Ready]] = {}
        self._dawns: dict[int, list[_Dawn]] = {}
        self._moments: list[int] = []
        """A heap of those at which there is a timer or a dawn."""
        self._ends: dict[tuple[tzinfo, int], int] = {}

    def begin(self) -> Iterator[Ready]:
        """Plan everything, and yield what is ready when the simulation begins."""
        yield from self._plan_missing()
        for series, day, at in self._scenario.good:
            self.refresh(self.partition(series, day), int(at.timestamp()))
        for each in self._scenario.opened:
            self._open(each)
        self._plan_days()

    def wake(self, now: int) -> Iterator[Ready]:
        """Yield what becomes ready by now; a day is among it even if it is good by then."""
        self.now = now
        while self._moments and self._moments[0] <= now:
            moment = heappop(self._moments)
            for day, members in self._dawns.pop(moment, ()):
                for index in members:
                    if self.series[index].first <= day <= self.series[index].last:
                        yield Lane.FRESH, self.partition(index, day)
            yield from self._timers.pop(moment, ())

    def later(self, moment: int, lane: Lane, partition: int) -> None:
        """Have a partition become ready at a moment."""
        self._ready_at[partition] = moment
        self._note(moment)
        self._timers.setdefault(moment, []).append((lane, partition))

    def refresh(self, partition: int, materialized_at: int) -> None:
        """Have a day that is good become ready at its next due point, if there is one left."""
        index, day = divmod(partition, self.width)
        points = self.points[index]
        end = self._end(self.series[index].zone, day + self.first_day)
        if end + points[-1] > materialized_at:
            point = next(end + point for point in points if end + point > materialized_at)
            self.later(max(point, self.now), Lane.REFRESH, partition)
        else:
            self._ready_at.pop(partition, None)

    def next_backfill(self, series: int, count: int) -> Iterator[int]:
        """Yield the next days of a series that are backfill, so many at most, as partitions."""
        days = self._backfill.get(series, [])
        for _ in range(min(count, len(days))):
            yield self.partition(series, days.pop())

    def ready_at(self, partition: int) -> int:
        """Return when a partition may be begun at the earliest."""
        planned = self._ready_at.get(partition)
        if planned is not None:
            return planned
        index, day = divmod(partition, self.width)
        return self._end(self.series[index].zone, day + self.first_day) + self.points[index][0]

    def points_passed(self, partition: int, at: int) -> int:
        """Return how many due points of a day have passed by a moment."""
        index, day = divmod(partition, self.width)
        return bisect_right(self.points[index], at - self._end(self.series[index].zone, day + self.first_day))

    def coming(self, until: int) -> dict[Lane, Counter[str]]:
        """Return how many requests are needed for what becomes ready by a moment, by lane and source."""
        coming = {lane: Counter[str]() for lane in Lane}
        for moment in self._moments:
            if moment <= until:
                for _, members in self._dawns.get(moment, ()):
                    coming[Lane.FRESH].update(self.series[index].source for index in members)
                ranged: dict[Ready, list[int]] = defaultdict(list)
                for lane, partition in self._timers.get(moment, ()):
                    index, day = divmod(partition, self.width)
                    if self.stretches[index]:
                        ranged[lane, index].append(day + self.first_day)
                    else:
                        coming[lane][self.series[index].source] += 1
                for (lane, index), days in ranged.items():
                    coming[lane][self.series[index].source] += count_ranges(days, self.stretches[index])
        return coming

    def next_moment(self) -> int | None:
        """Return when something becomes ready next."""
        return self._moments[0] if self._moments else None

    def unfinished(self) -> int:
        """Return how many partitions wait that are not good yet."""
        waiting = sum(lane is not Lane.REFRESH for each in self._timers.values() for lane, _ in each)
        return waiting + sum(map(len, self._backfill.values()))

    def key(self, partition: int) -> PartitionKey:
        """Return which partition a number is."""
        index, day = divmod(partition, self.width)
        series = self.series[index]
        logical_date = date.fromordinal(day + self.first_day)
        return PartitionKey(series.source, series.customer_id, series.query_name, logical_date)

    def partition(self, series: int, day: int) -> int:
        """Return the number of a partition."""
        return series * self.width + day - self.first_day

    def _open(self, opened: Opened) -> None:
        """Have open work become ready at its time; what is good and was given up, at its next due point."""
        partition = self.partition(opened.series, opened.day)
        if opened.ready_at is not None:
            self.later(ceil(opened.ready_at.timestamp()), opened.lane, partition)
        elif opened.is_good and opened.stop is not None and opened.stop.terminal:
            self.refresh(partition, self.now)

    def _plan_missing(self) -> Iterator[Ready]:
        fresh_from = self.now - int(self._scenario.fresh_for.total_seconds())
        for index, first, last in sorted(self._scenario.missing):
            for day in range(first, last + 1):
                if self._end(self.series[index].zone, day) + self.points[index][0] >= fresh_from:
                    yield Lane.FRESH, self.partition(index, day)
                else:
                    self._backfill.setdefault(index, []).append(day)
        for index, days in self._backfill.items():
            days.reverse()
            # As many as one request takes: more of a series are never served at once.
            most = max((each.days_per_request for each in self.stretches[index]), default=1)
            for partition in self.next_backfill(index, most):
                yield Lane.BACKFILL, partition

    def _plan_days(self) -> None:
        """Note when each day that is not due yet will be."""

        def alike(index: int) -> tuple[str, tuple[int, ...]]:
            return str(self.series[index].zone), self.points[index]

        yesterday = datetime.fromtimestamp(self.now, self._scenario.start.tzinfo).toordinal() - 1
        for (_, points), indexes in groupby(sorted(range(len(self.series)), key=alike), key=alike):
            members = list(indexes)
            earliest = yesterday - points[0] // 86_400 - 1
            for day in range(earliest, max(self.series[index].last for index in members) + 1):
                due = self._end(self.series[members[0]].zone, day) + points[0]
                if due > self.now:
                    self._note(due)
                    self._dawns.setdefault(due, []).append(_Dawn(day, members))

    def _note(self, moment: int) -> None:
        if moment not in self._timers and moment not in self._dawns:
            heappush(self._moments, moment)

    def _end(self, zone: tzinfo, day: int) -> int:
        end = self._ends.get((zone, day))
        if end is None:
            end = self._ends[zone, day] = int(day_end(date.fromordinal(day), zone).timestamp())
        return end
