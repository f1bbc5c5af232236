"""Whose turn it is among what was found ready: lanes by their shares, their customers by weights.

The rules are those of `sealbook.model.shares`: the lowest pass is served, and goes up by what that costs.
Here passes come from the ledger and go back to it, and a flow has as much in it as one batch can need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from sealbook.ledger.schedule.neighbours import Neighbours
from sealbook.model.budget import Budget
from sealbook.model.shares import stride
from sealbook.model.work import Lane

Flow = tuple[str, str]
"""A source, and one of its customers."""


class Ready(NamedTuple):
    """A row that can be claimed: where it is, and what it costs; the lowest priority and rank go first."""

    priority: int
    rank: int
    place: object
    requests: int


@dataclass(slots=True)
class LaneTurn:
    """A lane: how far it has come, and those of its flows that have something ready."""

    share: int
    pass_: int
    began: int
    """The pass at which it was last served."""
    clock: int
    """The pass of the flow that was last served in it."""
    flows: dict[Flow, tuple[int, list[Ready]]] = field(default_factory=dict)
    """The pass of each flow, and what is ready of it."""


class Turns(NamedTuple):
    """What a batch of turns came to: the places of rows, and the new passes of the flows that were served."""

    places: list[object]
    passes: dict[tuple[Lane, str, str], int]


_Entry = tuple[int, str, str, list[Ready]]
"""The pass of a flow, its source and customer, and what is ready of it, the first last."""


def take_turns(
    lanes: Mapping[Lane, LaneTurn],
    limit: int,
    weights: Mapping[Flow, int],
    budgets: Mapping[str, Budget],
    neighbours: Neighbours | None = None,
) -> Turns:
    """Pick up to so many rows, one turn after the other; move the lanes on, and reserve what it costs.

    With `neighbours` a turn takes a whole range, at the cost of one row. One that does not fit any more is
    left to the next batch: in two parts it would cost two requests.
    """
    places: list[object] = []
    passes: dict[tuple[Lane, str, str], int] = {}
    now = max((lane.began for lane in lanes.values()), default=0)
    queues = {name: _queue(lane) for name, lane in lanes.items() if lane.flows}
    while queues and len(places) < limit:
        name = min(queues, key=lambda each: lanes[each].pass_) if len(queues) > 1 else next(iter(queues))
        lane, queue = lanes[name], queues[name]
        pass_, source, customer_id, ready = queue[0]
        if not ready:
            heappop(queue)
            if not queue:
                del queues[name]
            continue
        _, _, place, requests = ready.pop()
        if neighbours is not None and place in neighbours.taken:
            continue
        budget = budgets.get(source) if requests else None
        if budget is not None and requests > room(budget, name):
            continue
        days = None if neighbours is None else neighbours.range_of(place, limit)
        if neighbours is None or days is None:
            places.append(place)
        elif len(places) + len(days.places) > limit:
            break
        else:
            neighbours.take(days)
            places += days.places
        if budget is not None:
            budget.reserve(name, requests)
        lane.clock = max(lane.clock, pass_)
        moved = lane.clock + stride(requests, weights.get((source, customer_id), 1))
        passes[name, source, customer_id] = moved
        heapreplace(queue, (moved, source, customer_id, ready))
        now = lane.began = max(now, lane.pass_)
        lane.pass_ = now + stride(requests, lane.share)
    return Turns(places, passes)


def room(budget: Budget, lane: Lane) -> int:
    """Return how many requests a lane may reserve, of a budget that was just read."""
    return budget.room(lane, 0)


def _queue(lane: LaneTurn) -> list[_Entry]:
    queue = [(pass_, *flow, sorted(ready, reverse=True)) for flow, (pass_, ready) in lane.flows.items()]
    heapify(queue)
    return queue
