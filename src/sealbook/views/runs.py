"""Runs as they are listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sealbook.errors import InvalidInput
from sealbook.ledger.events import ProjectedRun, RunStoreReader
from sealbook.model.run_snapshot import RunSnapshot, RunStatus


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run: its snapshot, and whether it is to be read again."""

    snapshot: RunSnapshot
    stale: bool

    @classmethod
    def of(cls, run: ProjectedRun) -> RunRow:
        """Return the row of a run as it was projected."""
        return cls(run.snapshot, run.stale)

    @property
    def duration(self) -> timedelta | None:
        """From start to end; None while it goes on."""
        return self.snapshot.duration

    @property
    def remarks(self) -> list[str]:
        """What is wrong with it."""
        skipped = len(self.snapshot.inconsistent)
        remarks = [
            self.snapshot.error,
            f"inconsistent (events skipped: {skipped})" if skipped else None,
            "stale: to be read again" if self.stale else None,
        ]
        return [remark for remark in remarks if remark is not None]

    def to_dict(self) -> dict[str, object]:
        """Return the snapshot's own members, and what the row adds to them."""
        seconds = None if self.duration is None else self.duration.total_seconds()
        return {**self.snapshot.to_dict(), "durationSeconds": seconds, "stale": self.stale}


def list_runs(
    store: RunStoreReader, limit: int, before: str | None = None, statuses: Sequence[str] = ()
) -> list[RunRow]:
    """Return runs as they were projected, the latest first; `before` is the last of the page before."""
    unknown = [each for each in statuses if each not in list(RunStatus)]
    if unknown:
        raise InvalidInput.of("status", unknown[0], f"one of {', '.join(RunStatus)}")
    chosen = [RunStatus(each) for each in statuses] or None
    return [RunRow.of(run) for run in store.list_runs(limit, before, chosen)]
