"""What operators want done about many partitions: previewed, and carried out as previewed (R-CTL-11)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sealbook.model.keys import PartitionKey
from sealbook.model.ranges import DaysPerRequest
from sealbook.model.selection import Selection
from sealbook.model.state import Status
from sealbook.model.universe import AssetName, Span


class PlanKind(StrEnum):
    """What is done about each partition of a plan."""

    RETRY = "retry"
    """A failed one is pending again: its sealed run is judged once more."""
    REPROCESS = "reprocess"
    """Another run is fetched; the state stays as it is until that is judged."""
    BACKFILL = "backfill"
    """A day that lacks is fetched."""
    MARK = "mark"
    """What is open, or has failed, is given up."""
    CLEAR = "clear"
    """Work that has stopped is taken up again."""

    @property
    def lasts(self) -> bool:
        """Whether it is at work until all of it is done; the others are done as soon as they are said."""
        return self in (PlanKind.REPROCESS, PlanKind.BACKFILL)

    @property
    def asks_source(self) -> bool:
        """Whether it costs requests: to give up, or to judge again, asks nobody."""
        return self not in (PlanKind.MARK, PlanKind.RETRY)


class PlanState(StrEnum):
    """Where a plan is: previewed, then at work until all of it is done, or paused or cancelled meanwhile."""

    PREVIEWED = "previewed"
    OPEN = "open"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked for: a kind, and the partitions it is for, `without` those that it cannot be done to.

    A backfill names `spans` of days, and takes those that are good too with `force`. The cost of a partition
    is in requests, one where its query is not named.
    """

    kind: PlanKind
    selection: Selection = field(default_factory=Selection)
    spans: tuple[Span, ...] = ()
    force: bool = False
    costs: Mapping[AssetName, int] = field(default_factory=dict)
    without: tuple[PartitionKey, ...] = ()

    def cost(self, source: str, query_name: str) -> int:
        """Return what a partition costs in requests."""
        return self.costs.get(AssetName(source, query_name), 1)


FENCE = ", open under fence "
"""In a standing, before the number that tells one moment of open work from another."""


class PlanItem(NamedTuple):
    """A partition of a plan, and how it stood when it was looked at."""

    key: PartitionKey
    standing: str

    def __str__(self) -> str:
        return f"{self.key} {self.standing}"

    @property
    def shown_standing(self) -> str:
        """How it stood, for people."""
        return self.standing.partition(FENCE)[0]


def requests_of(kind: PlanKind, items: Iterable[PlanItem], ranges: DaysPerRequest) -> Counter[AssetName]:
    """Return how many requests the items of a plan need at most, by query.

    What is open of them already is claimed in whichever lane it is, and so counts by itself.
    """
    if not kind.asks_source:
        return Counter()
    requests: Counter[AssetName] = Counter()
    lanes: dict[bool, list[PartitionKey]] = defaultdict(list)
    for key, standing in items:
        if FENCE in standing:
            requests[AssetName(key.source, key.query_name)] += 1
        else:
            is_refresh = kind is PlanKind.REPROCESS and standing.startswith(Status.SUCCESS)
            lanes[is_refresh].append(key)
    for keys in lanes.values():
        requests.update(ranges.requests(keys))
    return requests


class LeftOut(StrEnum):
    """Why a backfill has no use for a day that it was asked for."""

    GOOD = "good"
    """It is accepted; `force` takes it too."""
    OPEN = "open"
    """It is being worked on, is a part of another plan, or is fetched and has to be judged or loaded."""
    STOPPED = "stopped"
    """It is terminal or parked: it has to be cleared."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: what it does to how many partitions at which cost in requests, who wants it and why."""

    id: int
    kind: PlanKind
    name: str | None
    state: PlanState
    partitions: int
    requests: int
    actor: str
    reason: str
    previewed_at: datetime
    carried_out_at: datetime | None = None
    ended_at: datetime | None = None


class Previewed(NamedTuple):
    """A plan that was kept, its partitions, and how many of a backfill's days were left out."""

    plan: Plan
    items: list[PlanItem]
    left_out: Mapping[LeftOut, int]


class Progress(NamedTuple):
    """How far a plan is: what is open, how much of that is being worked on, and what has stopped."""

    open: int
    held: int
    stopped: int
