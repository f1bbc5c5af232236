"""The control plane on a virtual clock: policy, due points, shares and budget against drawn failures.

It is the policy itself that runs: `decide`, `Shares` and `Budget`. Only time, workers and luck are made up. A
partition is a number here, and its state a byte: two million of them are done within a minute.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime
from heapq import heappop, heappush
from math import ceil
from random import Random

from sealbook.control.agenda import Agenda
from sealbook.control.forecast import Forecast, Promise, busiest
from sealbook.control.scenario import Opened, Rates, Scenario
from sealbook.model.budget import Budget
from sealbook.model.retry import Cause, Failing, RunNow, Stopped, Wait, decide
from sealbook.model.shares import Flow, RangeDay, Shares, order_by
from sealbook.model.universe import AssetName
from sealbook.model.work import Lane

_OPEN, _GOOD, _TERMINAL, _PARKED = range(4)
_DAY = 86_400
_HOUR = 3_600
_MINUTE = 60


def simulate(scenario: Scenario, days: int | None = None) -> Forecast:
    """Run a scenario for some days, or until everything is done; nothing is written anywhere."""
    return _Simulation(scenario, days).run()


class _Simulation:
    """One run of a scenario."""

    def __init__(self, scenario: Scenario, days: int | None) -> None:
        self.scenario = scenario
        self.agenda = Agenda(scenario)
        self.now = self.start = int(scenario.start.timestamp())
        self.until = None if days is None else self.start + days * _DAY
        self.state = bytearray(len(scenario.series) * self.agenda.width)
        self.busy = bytearray(len(self.state))
        self.points = bytearray(len(self.state))
        """How many due points of each day are met."""
        self.tries: dict[int, int] = {}
        self.paused = 0
        """How much is not good, and waits for somebody."""
        self.working: list[tuple[int, tuple[int, ...], Lane, str]] = []
        """What is being worked on, by when that ends: the days of one request each."""
        self.shares = Shares[int](scenario.shares, scenario.weights)
        self.open = {lane: Counter[str]() for lane in Lane}
        """How much is ready, by lane and source."""
        self.budgets = {
            source: Budget(limit, scenario.shares) for source, limit in scenario.requests_per_day.items()
        }
        self.expected_at = self.start
        self.random = Random(scenario.seed).random
        self.rates = [
            scenario.rates.get(AssetName(each.source, each.query_name), Rates()) for each in scenario.series
        ]
        self.flows = {
            lane: [Flow(lane, each.source, each.customer_id) for each in scenario.series] for lane in Lane
        }
        self.sent: dict[str, Counter[int]] = defaultdict(Counter)
        """Requests, by source and minute."""
        share = scenario.shares[Lane.FRESH] / sum(scenario.shares.values())
        self.promise = Promise(scenario.seconds / (scenario.at_once * share))
        self.forecast = Forecast(scenario.start, scenario.start)

    def run(self) -> Forecast:
        """Go from moment to moment at which something happens."""
        for series, first, last in self.scenario.missing:
            for day in range(first, last + 1):
                self._meet(self.agenda.partition(series, day), self.start)
        for series, day, at in self.scenario.good:
            partition = self.agenda.partition(series, day)
            self.state[partition] = _GOOD
            self._meet(partition, int(at.timestamp()))
        for opened in self.scenario.opened:
            self._open(opened)
        for lane, partition in self.agenda.begin():
            self._add(lane, partition)
        while True:
            for lane, partition in self.agenda.wake(self.now):
                if lane is not Lane.FRESH or self.state[partition] == _OPEN:
                    self._add(lane, partition)
            self._finish()
            self._expect()
            self._claim()
            following = self._next_moment()
            if following is None or (self.until is not None and following > self.until):
                return self._end()
            self.now = following

    def _open(self, opened: Opened) -> None:
        """Take over how open work stands."""
        partition = self.agenda.partition(opened.series, opened.day)
        self._meet(partition, self.start)
        if opened.is_good:
            self.state[partition] = _GOOD
        elif opened.stop is not None:
            self.state[partition] = _TERMINAL if opened.stop.terminal else _PARKED
        elif opened.ready_at is None:
            self.paused += 1
        if opened.tries and opened.stop is None:
            self.tries[partition] = opened.tries

    def _add(self, lane: Lane, partition: int) -> None:
        """Hand ready work to the shares, in the order of its lane."""
        index, day = divmod(partition, self.agenda.width)
        flow = self.flows[lane][index]
        if lane is Lane.FRESH:
            self.promise.arrive(self.now)
        self.open[lane][flow.source] += 1
        stretches = self.agenda.stretches[index]
        ordinal = day + self.agenda.first_day
        place = RangeDay(index, ordinal, self.tries.get(partition, 0), stretches) if stretches else None
        order = order_by(lane, day, self.agenda.ready_at(partition))
        self.shares.add(flow, order, partition, day=place)

    def _claim(self) -> None:
        """Have every free worker take what is served next."""
        end = self.now + self.scenario.seconds
        for _ in range(self.scenario.at_once - len(self.working)):
            claimed = self.shares.take(self._room)
            if claimed is None:
                return
            (lane, source, _), partitions, cost = claimed
            for partition in partitions:
                self._check(lane, partition)
                self.busy[partition] = 1
            self.open[lane][source] -= len(partitions)
            if source in self.budgets:
                self.budgets[source].reserve(lane, cost)
            self.sent[source][self.now // _MINUTE] += cost
            self.forecast.requests_by_day[lane][(self.now - self.start) // _DAY] += cost
            heappush(self.working, (end, partitions, lane, source))
            if lane is Lane.BACKFILL:
                series = partitions[0] // self.agenda.width
                for following in self.agenda.next_backfill(series, len(partitions)):
                    self._add(lane, following)

    def _room(self, lane: Lane, source: str) -> int:
        budget = self.budgets.get(source)
        return 1 if budget is None else budget.room(lane, self.now)

    def _check(self, lane: Lane, partition: int) -> None:
        """Hold an attempt against the rules, by what is known apart from the shares."""
        ready_at = self.agenda.ready_at(partition)
        self.forecast.early += self.now < ready_at
        self.forecast.twice_at_once += self.busy[partition]
        self.forecast.lanes[lane].count(self.now, self.now - max(ready_at, self.start))
        if lane is Lane.FRESH:
            self.promise.begin(self.now)

    def _finish(self) -> None:
        """End what is done by now, as luck has it."""
        working = self.working
        while working and working[0][0] <= self.now:
            _, partitions, lane, source = heappop(working)
            if source in self.budgets:
                self.budgets[source].settle(lane, 1, 1, self.now)
            rates = self.rates[partitions[0] // self.agenda.width]
            fails = rates.transient + rates.permanent
            luck = self.random()
            for number, partition in enumerate(partitions):
                self.busy[partition] = 0
                if luck < fails:  # the request fails, and with it all days of it
                    cause = Cause.TRANSIENT if luck < rates.transient else Cause.PERMANENT
                    self._fail(partition, cause, len(partitions))
                elif (luck if not number else fails + self.random() * (1 - fails)) < fails + rates.rejected:
                    self._fail(partition, Cause.REJECTED)
                else:
                    self._succeed(partition)

    def _meet(self, partition: int, at: int) -> int:
        """Note that a day is fetched, and return how many due points that is for."""
        passed = self.agenda.points_passed(partition, at)
        met, self.points[partition] = passed - self.points[partition], passed
        return met

    def _succeed(self, partition: int) -> None:
        self.forecast.missed_points += max(self._meet(partition, self.now) - 1, 0)
        if self.state[partition] != _GOOD:
            self.state[partition] = _GOOD
            self.forecast.good_by_day[(self.now - self.start) // _DAY] += 1
        self.tries.pop(partition, None)
        self.agenda.refresh(partition, self.now)

    def _fail(self, partition: int, cause: Cause, days: int = 1) -> None:
        """Ask the policy what becomes of it."""
        key = self.agenda.key(partition)
        tries = self.tries[partition] = self.tries.get(partition, 0) + 1
        now = datetime.fromtimestamp(self.now, UTC)
        failing = Failing(key, tries, cause, now, seed=str(self.scenario.seed), days=days)
        is_good = self.state[partition] == _GOOD
        lane = Lane.REFRESH if is_good else Lane.RETRY
        match decide(failing, self.scenario.retries.of(key.source, key.query_name), now):
            case Wait(until=until):
                self.agenda.later(ceil(until.timestamp()), lane, partition)
            case RunNow():
                self.agenda.later(self.now, lane, partition)
            case Stopped(stop=stop) if is_good:
                del self.tries[partition]
                if stop.terminal:
                    self.agenda.refresh(partition, self.now)  # the next due point opens it again
            case Stopped(stop=stop):
                self.state[partition] = _TERMINAL if stop.terminal else _PARKED

    def _expect(self) -> None:
        """Tell budgets, once an hour, what each lane will ask for within a day."""
        if self.now < self.expected_at or not self.budgets:
            return
        self.expected_at = self.now + _HOUR
        ready, coming = self.shares.requests, self.agenda.coming(self.now + _DAY)
        for source, budget in self.budgets.items():
            for lane in Lane:
                # Who will fail is not known, but as many as yesterday is a fair guess.
                guess = budget.used[lane] if lane is Lane.RETRY else 0
                budget.expect(lane, max(ready[lane, source] + coming[lane][source], guess))

    def _next_moment(self) -> int | None:
        """Return when something happens next; None if nothing ever will."""
        planned = self.agenda.next_moment()
        moments = [] if planned is None else [planned]
        if self.working:
            moments.append(self.working[0][0])
        if len(self.working) < self.scenario.at_once:
            for source, budget in self.budgets.items():
                opens_at = budget.opens_at()
                if opens_at is not None and any(self.open[lane][source] for lane in Lane):
                    moments.append(max(opens_at, self.now + 1))
        return min(moments, default=None)

    def _end(self) -> Forecast:
        forecast = self.forecast
        forecast.ended_at = datetime.fromtimestamp(self.now, UTC)
        forecast.good = self.state.count(_GOOD)
        forecast.terminal = self.state.count(_TERMINAL)
        forecast.parked = self.state.count(_PARKED)
        ready = sum(self.open[lane].total() for lane in Lane if lane is not Lane.REFRESH)
        working = sum(len(days) for _, days, lane, _ in self.working if lane is not Lane.REFRESH)
        forecast.unfinished = self.agenda.unfinished() + ready + working + self.paused
        forecast.fresh_late = self.promise.latest
        forecast.busiest_day = {source: busiest(sent) for source, sent in self.sent.items()}
        return forecast
