"""Backfills as they are listed, and what of them has failed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice

from sealbook.control.backfills import Backfill, find_backfill, list_backfills
from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionKey
from sealbook.model.plans import PlanState
from sealbook.model.retry import Stop
from sealbook.model.words import counted


@dataclass(frozen=True, slots=True)
class BackfillRow:
    """A backfill: its partitions are done, waiting, being worked on (`held`) or stopped."""

    plan_id: int
    name: str | None
    state: PlanState
    partitions: int
    requests: int
    done: int
    waiting: int
    held: int
    stopped: int
    actor: str
    reason: str
    carried_out_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, found: Backfill) -> BackfillRow:
        """Make the row of a backfill."""
        plan, progress = found.plan, found.progress
        return cls(
            plan.id,
            plan.name,
            found.state,
            plan.partitions,
            plan.requests,
            found.done,
            progress.open - progress.held - progress.stopped,
            progress.held,
            progress.stopped,
            plan.actor,
            plan.reason,
            plan.carried_out_at,
            plan.ended_at,
        )

    @property
    def reference(self) -> str:
        """How commands name it."""
        return self.name or str(self.plan_id)

    @property
    def title(self) -> str:
        """How people are told of it."""
        return f"Backfill {self.plan_id}" + ("" if self.name is None else f" ({self.name})")

    @property
    def says(self) -> str:
        """How far it is, in words."""
        done = f"{self.done:,} of {counted(self.partitions, 'partition', 'is', 'are')} done"
        rest = [
            f"{count:,} {word}"
            for count, word in (
                (self.waiting, "open"),
                (self.held, "being worked on"),
                (self.stopped, "left undone" if self.state is PlanState.CANCELLED else "stopped"),
            )
            if count
        ]
        return ", ".join([done, *rest]) + "."

    def to_dict(self) -> dict[str, object]:
        """Return it as one object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A partition of a backfill that has failed: when it is tried again, or why it is not."""

    key: PartitionKey
    tries: int
    error: str | None
    next_at: datetime | None
    stop: Stop | None

    def to_dict(self) -> dict[str, object]:
        """Return it as one object, the fields of its key first."""
        fields = asdict(self)
        del fields["key"]
        return {**asdict(self.key), **fields}


def backfill_rows(ledger: LedgerReader, limit: int, before: int | None = None) -> list[BackfillRow]:
    """Return backfills, the newest first; `before` is the plan of the last of the page before."""
    found = (each for each in list_backfills(ledger.schedule) if before is None or each.plan.id < before)
    return [BackfillRow.of(each) for each in islice(found, limit)]


def backfill_in_full(ledger: LedgerReader, name: str) -> dict[str, object]:
    """Return a backfill by its name or number, and what of it has failed."""
    row = BackfillRow.of(find_backfill(ledger.schedule, name))
    return {**row.to_dict(), "failed": [each.to_dict() for each in failures_of(ledger, row.plan_id)]}


def failures_of(ledger: LedgerReader, plan_id: int) -> list[FailedRow]:
    """Return what of a plan has failed since it was last taken up; what somebody gave up has not."""
    return [
        FailedRow(
            each.key,
            each.work.tries,
            each.work.error,
            None if each.work.stop is not None else each.work.ready_at,
            each.work.stop,
        )
        for each in ledger.schedule.work_of_plan(plan_id)
        if each.work.tries or each.work.stop not in (None, Stop.MANUAL)
    ]
