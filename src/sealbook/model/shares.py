"""Who is served next: lanes by their shares, within a lane customers by their weights (R-CTL-6, R-CTL-10).

Stride scheduling: each lane, and each flow within it, has a pass; the lowest is served and goes up by what
that costs, divided by its share or weight. Who has nothing ready is passed over, so nothing is idle while
work is ready, and whoever returns starts at the present pass: it has no arrears. Days that one request asks
for are one turn, and cost what one day does.

This is the reference for the ledger's claim, and the engine of the rehearsal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from datetime import date, datetime
from heapq import heappop, heappush, heapreplace
from typing import Generic, NamedTuple, TypeVar

from sealbook.errors import InvalidInput
from sealbook.model.ranges import Stretch, range_around
from sealbook.model.work import Lane

T = TypeVar("T")

SCALE = 1_000_000
"""Passes are whole numbers, the same in every database: a cost of one at a weight of one is this much."""

DEFAULT_SHARES: Mapping[Lane, int] = {Lane.FRESH: 40, Lane.RETRY: 15, Lane.REFRESH: 30, Lane.BACKFILL: 15}

Room = Callable[[Lane, str], int]
"""How many requests a lane may spend at a source now."""


class Flow(NamedTuple):
    """The work of one customer of a source in a lane."""

    lane: Lane
    source: str
    customer_id: str


class RangeDay(NamedTuple):
    """A day that may be asked for together with its neighbours of the same series and as many tries."""

    series: Hashable
    """What tells its query from the others of the flow."""
    day: int
    tries: int
    stretches: tuple[Stretch, ...]


class Claimed(NamedTuple, Generic[T]):
    """What is served next, in the order of days where it is a range, and what that costs in requests."""

    flow: Flow
    items: tuple[T, ...]
    cost: int


def order_of(lane: Lane, day: date, ready_at: datetime) -> int:
    """Return where work stands in its flow: fresh newest day first, backfill oldest first, else by time."""
    return order_by(lane, day.toordinal(), int(ready_at.timestamp() * 1_000_000))


def order_by(lane: Lane, day: int, ready_at: int) -> int:
    """Return the same of numbers, whatever they count from."""
    if lane is Lane.FRESH:
        return -day
    return day if lane is Lane.BACKFILL else ready_at


def stride(cost: int, weight: int) -> int:
    """Return by how much a pass goes up; what asks no source takes a worker's time, and counts as one."""
    return max(cost, 1) * SCALE // weight


class Shares(Generic[T]):
    """Ready work, and who is served next. What waits is not in it: it is added once it is ready (R-CTL-9)."""

    def __init__(
        self,
        shares: Mapping[Lane, int] = DEFAULT_SHARES,
        weights: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        """Take the shares of lanes, and the weights of customers by source and id: one if it is not named."""
        if set(shares) != set(Lane) or min(shares.values()) < 1:
            raise InvalidInput.of(
                "shares", dict(shares), f"a whole number from 1 for each of {', '.join(Lane)}"
            )
        self._weights = weights or {}
        self._lanes = [_LaneQueue[T](lane, shares[lane]) for lane in Lane]
        self._by_lane = {queue.lane: queue for queue in self._lanes}
        self._flows: dict[Flow, _FlowQueue[T]] = {}
        self._clock = 0
        self.requests: Counter[tuple[Lane, str]] = Counter()
        """What all that is ready costs, by lane and source; days without a gap count as one range."""

    def add(self, flow: Flow, order: int, item: T, cost: int = 1, day: RangeDay | None = None) -> None:
        """Add what is ready; within a flow the lowest order comes first, and takes its neighbours with it."""
        queue = self._queue(flow)
        self.requests[flow[:2]] += queue.add(order, item, cost, day)
        self._by_lane[flow.lane].source(flow.source).settle(queue)

    def take(self, room: Room) -> Claimed[T] | None:
        """Take what is served next; None if nothing is ready, or nothing of it may be spent or is open."""
        for lane in sorted(self._lanes, key=_pass_of):
            source = lane.lowest(room)
            if source is None:
                continue
            queue, items, cost, requests = source.take()
            self.requests[lane.lane, source.name] -= requests
            lane.clock = max(lane.clock, queue.pass_)
            queue.pass_ = lane.clock + stride(cost, queue.weight)
            source.settle(queue)
            self._clock = max(self._clock, lane.pass_)
            lane.pass_ = self._clock + stride(cost, lane.share)
            return Claimed(queue.flow, items, cost)
        return None

    def pause(self, source: str, customer_id: str | None = None) -> None:
        """Serve nothing of a source, or of one of its customers, until it resumes."""
        self._open(source, customer_id, is_open=False)

    def resume(self, source: str, customer_id: str | None = None) -> None:
        """Serve a source or a customer again."""
        self._open(source, customer_id, is_open=True)

    def ready(self, lane: Lane) -> int:
        """Return how much is ready in a lane, paused or not."""
        return sum(len(queue) for flow, queue in self._flows.items() if flow.lane is lane)

    def _open(self, source: str, customer_id: str | None, *, is_open: bool) -> None:
        for lane in self._lanes:
            if customer_id is None:
                lane.source(source).is_open = is_open
            else:
                queue = self._queue(Flow(lane.lane, source, customer_id))
                queue.is_open = is_open
                lane.source(source).settle(queue)

    def _queue(self, flow: Flow) -> _FlowQueue[T]:
        queue = self._flows.get(flow)
        if queue is None:
            weight = self._weights.get((flow.source, flow.customer_id), 1)
            queue = self._flows[flow] = _FlowQueue(flow, weight)
        return queue


class _FlowQueue(Generic[T]):
    """The ready work of a flow: what asks the source apart from what does not."""

    __slots__ = ("flow", "free", "is_open", "paid", "pass_", "queued", "ranges", "serial", "weight")

    def __init__(self, flow: Flow, weight: int) -> None:
        self.flow = flow
        self.weight = weight
        self.pass_ = 0
        self.is_open = True
        self.paid: list[tuple[int, int, T, int]] = []
        self.free: list[tuple[int, int, T, int]] = []
        self.queued = [False, False]
        """Whether it stands in the heap of all flows, and in that of flows with free work."""
        self.serial = 0
        self.ranges: _RangeDays[T] | None = None
        """Which of the paid work may be asked for together; None: none of it."""

    def __len__(self) -> int:
        gone = 0 if self.ranges is None else len(self.ranges.gone)
        return len(self.paid) + len(self.free) - gone

    def has(self, index: int) -> bool:
        return self.is_open and bool(self.free if index == _FREE else self.paid or self.free)

    def first(self, *, free: bool) -> list[tuple[int, int, T, int]]:
        """Return the heap whose head comes first."""
        if free or not self.paid or (self.free and self.free[0] < self.paid[0]):
            return self.free
        return self.paid

    def add(self, order: int, item: T, cost: int, day: RangeDay | None) -> int:
        """Add what is ready, and return how many requests more that makes."""
        self.serial += 1
        heappush(self.paid if cost else self.free, (order, self.serial, item, cost))
        if day is None or not cost:
            return cost
        self.ranges = self.ranges or _RangeDays()
        return cost * self.ranges.add(self.serial, item, cost, day)

    def take(self, *, free: bool) -> tuple[tuple[T, ...], int, int]:
        """Take what comes first and what is asked for with it; return the cost, and the requests less."""
        _, serial, item, cost = heappop(self.first(free=free))
        if self.ranges is None or not cost:
            return (item,), cost, cost
        items, fewer = self.ranges.take(serial, item)
        while self.paid and self.paid[0][1] in self.ranges.gone:
            self.ranges.gone.discard(heappop(self.paid)[1])
        return items, cost, cost * fewer


class _RangeDays(Generic[T]):
    """The ready days of a flow that may be asked for together, and which of them are taken."""

    def __init__(self) -> None:
        self.gone: set[int] = set()
        """What was taken with others, and stands in the queue still, by its number."""
        self._days: dict[int, tuple[RangeDay, dict[int, tuple[int, T]]]] = {}
        """By number: the day, and its neighbours by day."""
        self._series: dict[Hashable, dict[int, tuple[int, T]]] = {}

    def add(self, serial: int, item: T, cost: int, day: RangeDay) -> int:
        """Add a day; return how many more there are without a gap: one, unless it goes on with others."""
        alike = self._series.setdefault((day.series, day.tries, cost), {})
        alike[day.day] = (serial, item)
        self._days[serial] = (day, alike)
        return 1 - (day.day - 1 in alike) - (day.day + 1 in alike)

    def take(self, serial: int, item: T) -> tuple[tuple[T, ...], int]:
        """Take the range of a day; return how many less there are without a gap, too."""
        if serial not in self._days:
            return (item,), 1
        day, alike = self._days[serial]
        together = range_around(day.day, alike, day.stretches, tries=day.tries)
        taken = [alike.pop(each) for each in together]
        for number, _ in taken:
            del self._days[number]
            self.gone.add(number)
        self.gone.discard(serial)
        fewer = 1 - (together[0] - 1 in alike) - (together[-1] + 1 in alike)
        return tuple(each for _, each in taken), fewer


_ANY, _FREE = 0, 1


class _SourceQueue(Generic[T]):
    """The flows of one source in a lane, lowest pass first; those with free work once more by themselves.

    A flow stands in a heap at most once; if its pass went up by the other heap, it is moved when it is met.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_open = True
        self._heaps: tuple[list[tuple[int, str, _FlowQueue[T]]], ...] = ([], [])
        self._free_only = False

    def settle(self, queue: _FlowQueue[T]) -> None:
        """Have a flow stand in the heaps that it belongs to."""
        for index, heap in enumerate(self._heaps):
            if not queue.queued[index] and queue.has(index):
                queue.queued[index] = True
                heappush(heap, (queue.pass_, queue.flow.customer_id, queue))

    def lowest(self, lane: Lane, room: Room) -> int | None:
        """Return the lowest pass of a flow that can be served; `take` then takes from it."""
        first = self._head(_ANY) if self.is_open else None
        if first is None:
            return None
        cost = first.first(free=False)[0][3]
        self._free_only = cost > 0 and cost > room(lane, self.name)
        if self._free_only:
            first = self._head(_FREE)
        return None if first is None else first.pass_

    def take(self) -> tuple[_FlowQueue[T], tuple[T, ...], int, int]:
        """Take from the flow that `lowest` found."""
        index = _FREE if self._free_only else _ANY
        queue = heappop(self._heaps[index])[2]
        queue.queued[index] = False
        return queue, *queue.take(free=self._free_only)

    def _head(self, index: int) -> _FlowQueue[T] | None:
        heap = self._heaps[index]
        while heap:
            pass_, customer_id, queue = heap[0]
            if not queue.has(index):
                heappop(heap)
                queue.queued[index] = False
            elif pass_ != queue.pass_:
                heapreplace(heap, (queue.pass_, customer_id, queue))
            else:
                return queue
        return None


class _LaneQueue(Generic[T]):
    """A lane: its pass among lanes, the pass of the flow served last, and its sources."""

    def __init__(self, lane: Lane, share: int) -> None:
        self.lane = lane
        self.share = share
        self.pass_ = 0
        self.clock = 0
        self._sources: dict[str, _SourceQueue[T]] = {}

    def source(self, name: str) -> _SourceQueue[T]:
        found = self._sources.get(name)
        if found is None:
            found = self._sources[name] = _SourceQueue(name)
        return found

    def lowest(self, room: Room) -> _SourceQueue[T] | None:
        """Return the source whose flow is to be served next."""
        best: tuple[int, str] | None = None
        for name, source in self._sources.items():
            pass_ = source.lowest(self.lane, room)
            if pass_ is not None and (best is None or (pass_, name) < best):
                best = (pass_, name)
        return None if best is None else self._sources[best[1]]


def _pass_of(lane: _LaneQueue[T]) -> int:
    return lane.pass_
