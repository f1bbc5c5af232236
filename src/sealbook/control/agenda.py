"""What becomes ready when, in a simulation: days that end, days that are due again, retries, a backfill.

A partition is a number: that of its series times the days that there are, plus that of its day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, tzinfo
from heapq import heappop, heappush
from itertools import groupby
from math import ceil
from typing import NamedTuple

from sealbook.control.scenario import Opened, Scenario
from sealbook.model.freshness import day_end
from sealbook.model.keys import PartitionKey
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
        self.first_day = min((each.first for each in scenario.series), default=0)
        self.width = max((each.last for each in scenario.series), default=0) - self.first_day + 1
        self.now = int(scenario.start.timestamp())
        self._scenario = scenario
        self._ready_at: dict[int, int] = {}
        """Of what does not follow from its day: retries and refreshes."""
        self._backfill: dict[int, list[int]] = {}
        """Days of a series, the next one last: each becomes ready when the one before is begun."""
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

    def next_backfill(self, series: int) -> int | None:
        """Return the next day of a series that is backfill, as a partition."""
        days = self._backfill.get(series)
        return self.partition(series, days.pop()) if days else None

    def ready_at(self, partition: int) -> int:
        """Return when a partition may be begun at the earliest."""
        planned = self._ready_at.get(partition)
        if planned is not None:
            return planned
        index, day = divmod(partition, self.width)
        return self._end(self.series[index].zone, day + self.first_day) + self.points[index][0]

    def coming(self, until: int) -> dict[Lane, Counter[str]]:
        """Return how much becomes ready by a moment, by lane and source."""
        coming = {lane: Counter[str]() for lane in Lane}
        for moment in self._moments:
            if moment <= until:
                for _, members in self._dawns.get(moment, ()):
                    coming[Lane.FRESH].update(self.series[index].source for index in members)
                for lane, partition in self._timers.get(moment, ()):
                    coming[lane][self.series[partition // self.width].source] += 1
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
            yield Lane.BACKFILL, self.partition(index, days.pop())

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
