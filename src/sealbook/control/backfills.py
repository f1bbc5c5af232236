"""Backfills as the schedule has them, for whoever only reads."""

from __future__ import annotations

from typing import NamedTuple

from sealbook.errors import NotFound
from sealbook.ledger.schedule.reader import ScheduleReader
from sealbook.model.plans import Plan, PlanKind, PlanState, Progress


class Backfill(NamedTuple):
    """A plan that was carried out, and how far it is."""

    plan: Plan
    progress: Progress

    @property
    def state(self) -> PlanState:
        """Where it is: done as soon as nothing of it is open."""
        is_done = self.plan.state is PlanState.OPEN and not self.progress.open
        return PlanState.DONE if is_done else self.plan.state

    @property
    def done(self) -> int:
        """How many of its partitions nothing is to be done about any more."""
        return self.plan.partitions - self.progress.open


def list_backfills(schedule: ScheduleReader) -> list[Backfill]:
    """Return the backfills that were carried out, the newest first."""
    progresses = schedule.progresses()
    return [
        Backfill(plan, progresses.get(plan.id, Progress(0, 0, 0)))
        for plan in schedule.plans()
        if plan.kind is PlanKind.BACKFILL and plan.state is not PlanState.PREVIEWED
    ]


def find_backfill(schedule: ScheduleReader, name: str) -> Backfill:
    """Return a backfill by its name or number: the newest of a name."""
    for each in list_backfills(schedule):
        if name in (each.plan.name, str(each.plan.id)):
            return each
    raise NotFound(f"there is no backfill {name}", remedy="`sealbook backfill` lists those there are.")
