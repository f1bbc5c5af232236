"""When a run has ended, and how: one pure function of what the log says of its partitions (R-RUN-3)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from sealbook.model.events import EventType
from sealbook.model.run_snapshot import RunStatus
from sealbook.model.verdict import Outcome


class Progress(StrEnum):
    """How far a run is with one partition; the first three have yet to end."""

    PLANNED = "planned"
    SEALED = "sealed"
    ACCEPTED = "accepted"
    PUBLISHED = "published"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether the run has nothing more to do about the partition."""
        return self not in (Progress.PLANNED, Progress.SEALED, Progress.ACCEPTED)


_BEFORE_SEALED = (Progress.PLANNED, Progress.FAILED)


class RunPartition:
    """What a run's log says of one partition so far; events are taken in their order."""

    __slots__ = ("accepted", "progress")

    def __init__(self) -> None:
        self.progress = Progress.PLANNED
        self.accepted = False
        """Whether a judgement has ever accepted it in this run."""

    def take(self, event_type: str, outcome: str | None = None) -> None:
        """Take in one more event of the partition; `outcome` is that of a judgement."""
        match event_type:
            # A seal may be told late, by who found it: it takes nothing back of what followed it.
            case EventType.PARTITION_SEALED if not self.accepted and self.progress in _BEFORE_SEALED:
                self.progress = Progress.SEALED
            case EventType.PARTITION_JUDGED if outcome == Outcome.ACCEPTED:
                self.accepted = True
                # Judging what is published again publishes nothing, and takes nothing away.
                if self.progress is not Progress.PUBLISHED:
                    self.progress = Progress.ACCEPTED
            case EventType.PARTITION_JUDGED:
                self.progress = Progress.REJECTED
            case EventType.PARTITION_PUBLISHED:
                self.progress = Progress.PUBLISHED
            case EventType.PARTITION_FAILED if self.progress is not Progress.PUBLISHED:
                self.progress = Progress.FAILED
            case EventType.PARTITION_CANCELLED:
                self.progress = Progress.CANCELLED

    def supersede(self) -> None:
        """Take in that a newer run has authority: an accepted run is not published any more."""
        if self.progress is Progress.ACCEPTED:
            self.progress = Progress.SUPERSEDED


def run_end(partitions: Iterable[RunPartition], *, never_began: bool = False) -> RunStatus | None:
    """Return the status in which a run ends that set out to do these partitions; None while it goes on.

    CANCELLED if it was stopped on purpose, else COMPLETED if any partition was accepted, else FAILED. A run
    of which nothing is known has not ended; but one whose work could not begin has failed, if nothing of it
    was done before: there is nothing to go on with.
    """
    accepted = cancelled = found = False
    partitions = list(partitions)
    if never_began and all(each.progress is Progress.PLANNED for each in partitions):
        return RunStatus.FAILED
    for each in partitions:
        if not each.progress.ended:
            return None
        found = True
        accepted |= each.accepted
        cancelled |= each.progress is Progress.CANCELLED
    if not found:
        return None
    if cancelled:
        return RunStatus.CANCELLED
    return RunStatus.COMPLETED if accepted else RunStatus.FAILED
