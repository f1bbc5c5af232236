"""Old runs go from the log to the archive: written, read back, and only then retired (R-EVT-5).

Whatever moment it dies at, nothing is lost and nothing is told twice: a run that was archived and not retired
is found in the archive by the next, who retires it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sealbook.errors import Conflict, Corrupt, NotFound
from sealbook.ledger.events import QuietRun, SqlRunStore
from sealbook.model import RunStatus
from sealbook.status.archive import RunArchive, Segment, Span, digest_of


class Retirement(StrEnum):
    """What became of a run that has been quiet for long."""

    RETIRED = "retired"
    DUE = "due"
    """It would be retired; this was a dry run."""
    OPEN = "open"
    """It has not ended: it stays in the log."""
    MOVED = "moved"
    """It said something, or was retired by another, in the meantime."""


@dataclass(frozen=True, slots=True)
class RetiredTo:
    """A quiet run, and what became of it."""

    run_id: str
    status: RunStatus
    last_event_at: datetime
    events: int
    became: Retirement
    file: str | None = None
    """The file below the archive that holds its events."""


def retire_runs(
    store: SqlRunStore, archive: RunArchive, age: timedelta, *, actor: str, reason: str, dry_run: bool = False
) -> Iterator[RetiredTo]:
    """Take every run that has ended, and is quiet for so long, out of the log; yield each as it is done."""
    for quiet in store.quiet_runs(age):
        span = Span(quiet.run_id, quiet.first_seq, quiet.last_seq)
        snapshot = store.project_snapshot(quiet.run_id)
        if not snapshot.status.final:
            yield _told(quiet, snapshot.status, Retirement.OPEN)
        elif dry_run:
            yield _told(quiet, snapshot.status, Retirement.DUE)
        else:
            segment = _archived(store, archive, span)
            try:
                store.retire_run(quiet.run_id, actor=actor, reason=reason, last_seq=quiet.last_seq)
            except (Conflict, NotFound):  # of these two alone: it is not what was archived
                yield _told(quiet, snapshot.status, Retirement.MOVED)
            else:
                yield _told(quiet, snapshot.status, Retirement.RETIRED, segment.file)


def _archived(store: SqlRunStore, archive: RunArchive, span: Span) -> Segment:
    """Return the segment of a span, which has been read back from the archive and is what the log says."""
    segment = archive.find(span)
    if segment is None:
        segment = archive.write(span, store.events_by_partition(span.run_id, span.last_seq))
    elif segment.sha256 != digest_of(store.events_by_partition(span.run_id, span.last_seq)):
        raise Corrupt(
            f"{archive.url}/{span.path}.json names other events than the log has of run {span.run_id}",
            remedy="Is it the archive of another ledger? Give each an archive of its own.",
        )
    archive.check(segment)
    archive.clear(segment)
    return segment


def _told(quiet: QuietRun, status: RunStatus, became: Retirement, file: str | None = None) -> RetiredTo:
    return RetiredTo(quiet.run_id, status, quiet.last_event_at, quiet.events, became, file)
