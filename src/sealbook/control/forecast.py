"""What a simulation found: when what would be good, what that costs, which lane waits, which rules held."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sealbook.model.budget import WINDOW
from sealbook.model.work import Lane

_MINUTE = 60


@dataclass(slots=True)
class LaneForecast:
    """The work of one lane: attempts, their requests, and how long ready work waited for its turn."""

    attempts: int = 0
    waited: int = 0
    """Seconds, of all attempts together."""
    longest_wait: int = 0
    """Seconds."""
    idle_at: int | None = None

    def count(self, at: int, waited: int) -> None:
        """Count an attempt that was begun."""
        self.attempts += 1
        self.waited += waited
        self.idle_at = at
        if waited > self.longest_wait:
            self.longest_wait = waited

    @property
    def done_at(self) -> datetime | None:
        """When its last work was begun; None if it had none."""
        return None if self.idle_at is None else datetime.fromtimestamp(self.idle_at, UTC)

    @property
    def mean_wait(self) -> float:
        """Seconds."""
        return self.waited / self.attempts if self.attempts else 0.0


@dataclass(slots=True)
class Promise:
    """What a lane's share promises: to be served as early as if its share of all workers were its own.

    The n-th piece of work is begun no later than such a lane of its own would have done with it.
    """

    seconds_each: float
    """How long a lane of its own would take for a piece of work: the time of an attempt over its workers."""
    arrivals: deque[int] = field(default_factory=deque)
    """When work that is not begun yet became ready."""
    done_at: float = 0.0
    latest: float = 0.0
    """By how many seconds the promise was missed at the worst."""

    def arrive(self, at: int) -> None:
        """Note work that becomes ready."""
        self.arrivals.append(at)

    def begin(self, at: int) -> None:
        """Hold the next piece of work that is begun against the promise."""
        self.done_at = max(self.done_at, self.arrivals.popleft()) + self.seconds_each
        self.latest = max(self.latest, at - self.done_at)


@dataclass
class Forecast:
    """The outcome of a simulation."""

    started_at: datetime
    ended_at: datetime
    lanes: dict[Lane, LaneForecast] = field(default_factory=lambda: {lane: LaneForecast() for lane in Lane})
    good: int = 0
    terminal: int = 0
    parked: int = 0
    unfinished: int = 0
    """Due by the end, and neither good nor given up."""
    good_by_day: Counter[int] = field(default_factory=Counter)
    """How many partitions became good for the first time, by day of the simulation."""
    requests_by_day: dict[Lane, Counter[int]] = field(
        default_factory=lambda: {lane: Counter() for lane in Lane}
    )
    busiest_day: dict[str, int] = field(default_factory=dict)
    """By source, the most requests in any 24 hours."""
    missed_points: int = 0
    """Due points that passed while their day still waited for the one before: one fetch was for both."""
    fresh_late: float = 0.0
    """Seconds by which fresh work was at worst begun later than its lane's share promises."""
    early: int = 0
    """Attempts before their time. A sound policy has none."""
    twice_at_once: int = 0
    """Attempts at what was being worked on. A sound policy has none."""

    @property
    def requests(self) -> int:
        """What all of it costs."""
        return sum(each.total() for each in self.requests_by_day.values())

    @property
    def backfill_done_at(self) -> datetime | None:
        """When the last of the backfill was begun; None if there was none."""
        return self.lanes[Lane.BACKFILL].done_at


def busiest(sent: Counter[int]) -> int:
    """Return the most requests in any 24 hours, of requests counted by the minute."""
    most = total = 0
    within: deque[tuple[int, int]] = deque()
    for minute, count in sorted(sent.items()):
        total += count
        within.append((minute, count))
        while within[0][0] <= minute - WINDOW // _MINUTE:
            total -= within.popleft()[1]
        most = max(most, total)
    return most


def by_day(forecast: Forecast) -> Iterator[tuple[int, int, dict[Lane, int]]]:
    """Yield each day of the simulation, how many partitions became good in it, and its requests by lane."""
    days = {*forecast.good_by_day, *(day for each in forecast.requests_by_day.values() for day in each)}
    for day in range(max(days, default=-1) + 1):
        requests = {lane: each[day] for lane, each in forecast.requests_by_day.items()}
        yield day, forecast.good_by_day[day], requests
