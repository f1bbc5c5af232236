"""How long a plan takes: by the pace of the last runs, and by what sources may be asked in a day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sealbook.config import ControlSettings
from sealbook.ledger.events.reader import RunStoreReader
from sealbook.model.plans import Plan, PlanItem, PlanKind, requests_of
from sealbook.model.ranges import DaysPerRequest
from sealbook.model.work import Lane

_RUNS = 50
"""So many of the last runs are looked at."""


@dataclass(frozen=True, slots=True)
class BudgetShare:
    """A source that a backfill asks: how often, of how many times a day, and which part of that it has."""

    source: str
    requests: int
    requests_per_day: int
    share: float

    @property
    def days(self) -> float:
        """How long it takes if nothing is lent to it."""
        return self.requests / (self.requests_per_day * self.share)


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long a plan takes: `by_pace` if it has all workers to itself; None where no run tells."""

    by_pace: timedelta | None
    budgets: tuple[BudgetShare, ...] = ()


def estimate(
    control: ControlSettings,
    ranges: DaysPerRequest,
    runs: RunStoreReader,
    plan: Plan,
    items: Iterable[PlanItem],
) -> Estimate:
    """Estimate how long a plan takes."""
    pace = _seconds_a_partition(runs)
    by_pace = None if pace is None else timedelta(seconds=round(plan.partitions * pace))
    if plan.kind is not PlanKind.BACKFILL:
        return Estimate(by_pace)
    share = control.shares[Lane.BACKFILL] / sum(control.shares.values())
    counts: Counter[str] = Counter()
    for name, requests in requests_of(plan.kind, items, ranges).items():
        counts[name.source] += requests
    each = plan.requests / counts.total()
    return Estimate(
        by_pace,
        tuple(
            BudgetShare(source, round(counts[source] * each), limit, share)
            for source, limit in control.requests_per_day.items()
            if source in counts
        ),
    )


def _seconds_a_partition(runs: RunStoreReader) -> float | None:
    """Return how long the last runs that have ended took for a partition that they sealed."""
    sealed, seconds = 0, 0.0
    for run in runs.list_runs(_RUNS):
        duration, counters = run.snapshot.duration, run.snapshot.counters
        if duration is not None and counters.partitions_sealed:
            sealed += counters.partitions_sealed
            seconds += duration.total_seconds()
    return seconds / sealed if sealed else None
