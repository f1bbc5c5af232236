"""Claims: who works on which partitions for now, under which fences (R-CTL-4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.ranges import follows
from sealbook.model.work import Lane, WorkKind

Fences = Mapping[PartitionKey, int]
"""The fence of each partition that is worked on under a claim; with an old one nothing is changed."""

LOST = "the claim under which it was worked on holds no more"
"""Why what was worked on comes to nothing: somebody else has it, or it was taken away."""


class Claim(NamedTuple):
    """The work on one partition, for its holder alone as long as it keeps the lease."""

    key: PartitionKey
    lane: Lane
    kind: WorkKind
    fence: int
    run_id: RunId | None
    """The run to judge or to load."""
    requests: int
    """What was reserved for it; of days that are asked for together, the first has what all of them cost."""
    tries: int
    plan_id: int | None
    left_run_id: RunId | None = None
    """The run as part of which somebody was at it before, and lost it without a word."""


class Lease(NamedTuple):
    """Who works on a partition, since when, and until when at least."""

    key: PartitionKey
    holder: str
    since: datetime
    until: datetime


class Waiting(StrEnum):
    """Why nothing was claimed: nothing is ready, what is ready has to wait, or others are just at it."""

    IDLE = "idle"
    GATED = "gated"
    CONTENDED = "contended"


@dataclass(frozen=True, slots=True)
class Reservation:
    """Requests that were counted before they are made, to be settled by its id once they are."""

    id: int
    source: str
    lane: Lane
    requests: int


@dataclass(frozen=True, slots=True)
class Claims:
    """What one call claimed for a holder, until `expires_at` unless it is renewed.

    Where that is nothing, `waiting` says why, and `next_at` when it is worth another try, if that is known.
    """

    holder: str
    expires_at: datetime
    claims: tuple[Claim, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    waiting: Waiting | None = None
    next_at: datetime | None = None

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.claims)

    def __len__(self) -> int:
        return len(self.claims)

    @property
    def fences(self) -> dict[PartitionKey, int]:
        """The fence of each."""
        return {claim.key: claim.fence for claim in self.claims}


def ranges_of(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Return fetches as they were claimed together, in key order: each range is one request."""
    found: list[list[Claim]] = []
    for claim in sorted(claims, key=attrgetter("key")):
        if claim.requests or not found or not follows(claim.key, found[-1][-1].key):
            found.append([])
        found[-1].append(claim)
    return found
