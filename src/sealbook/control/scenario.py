"""What a simulation of the control plane starts from: who has which days, what is good, how much fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.ranges import DAY_BY_DAY, DaysPerRequest
from sealbook.model.retry import RetryPolicies, Stop
from sealbook.model.shares import DEFAULT_SHARES
from sealbook.model.universe import AssetName
from sealbook.model.work import Lane


@dataclass(frozen=True, slots=True)
class Rates:
    """Which part of all attempts fails, by cause."""

    transient: float = 0.0
    permanent: float = 0.0
    rejected: float = 0.0

    def __post_init__(self) -> None:
        for name in ("transient", "permanent", "rejected"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput.of(name, getattr(self, name), "a part of all attempts, from 0 to 1")
        if self.transient + self.permanent + self.rejected > 1:
            raise InvalidInput.of("rates", self, "at most 1 together")


class Series(NamedTuple):
    """The days of one customer and query, as numbers (`date.toordinal`), both ends included."""

    source: str
    customer_id: str
    query_name: str
    first: int
    last: int
    zone: tzinfo = UTC


class Missing(NamedTuple):
    """Consecutive days of a series, by its index, that are due and not good when the simulation begins."""

    series: int
    first: int
    last: int


class Materialized(NamedTuple):
    """A day of a series that is good when the simulation begins, and when it was last materialized."""

    series: int
    day: int
    at: datetime


class Opened(NamedTuple):
    """A day of a series that work is open of when the simulation begins.

    Without `ready_at` nothing is tried of it by itself: it has stopped, or is paused for good.
    """

    series: int
    day: int
    lane: Lane
    ready_at: datetime | None
    tries: int = 0
    """Failures in a row so far."""
    stop: Stop | None = None
    is_good: bool = False
    """Whether consumers can read it: the work is to refresh it."""


@dataclass(frozen=True)
class Scenario:
    """A book, its policy and its luck, from a moment on."""

    start: datetime
    series: tuple[Series, ...]
    due: Mapping[AssetName, tuple[timedelta, ...]] = field(default_factory=dict)
    """The due points of queries; without any a day is due once, at its end."""
    missing: tuple[Missing, ...] = ()
    good: tuple[Materialized, ...] = ()
    opened: tuple[Opened, ...] = ()
    """What is in neither of the two: it failed, is waited for, or was asked for."""
    rates: Mapping[AssetName, Rates] = field(default_factory=dict)
    retries: RetryPolicies = field(default_factory=RetryPolicies)
    shares: Mapping[Lane, int] = field(default_factory=lambda: DEFAULT_SHARES)
    weights: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of customers, by source and id."""
    requests_per_day: Mapping[str, int] = field(default_factory=dict)
    """By source; without one, as many as can be sent."""
    ranges: DaysPerRequest = DAY_BY_DAY
    """How many days of a query one request takes."""
    fresh_for: timedelta = timedelta(days=3)
    """How long after it was due a missing day counts as fresh; an older one is backfill."""
    at_once: int = 64
    """How many requests are worked on at once, by all loops together."""
    seconds: int = 2
    """How long an attempt takes."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("at_once", "seconds"):
            if getattr(self, name) < 1:
                raise InvalidInput.of(name, getattr(self, name), "a whole number from 1")

    def due_points(self, series: Series) -> tuple[int, ...]:
        """Return the due points of a series, in seconds after the end of a day."""
        points = self.due.get(AssetName(series.source, series.query_name), ())
        return tuple(int(point.total_seconds()) for point in points) or (0,)
