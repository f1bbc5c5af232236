"""Retention: a whole finished run is removed, and who did it is remembered (R-EVT-5).

Some events come late: a partition of a run may be hidden years after the run was retired. Such an event is
stored under the next number, and goes on from how the run had ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, delete, func, insert, select

from sealbook.errors import Conflict, IllegalMove, NotFound
from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.events.replay import replay
from sealbook.ledger.events.rows import read_events
from sealbook.ledger.events.tables import projection, retired_run, run_event, run_head, run_snapshot
from sealbook.model.run_snapshot import RunSnapshot, RunStatus


@dataclass(frozen=True, slots=True)
class RetiredRun:
    """A run whose events are gone: how it had ended, how many they were, and who removed them."""

    run_id: str
    last_seq: int
    event_count: int
    status: RunStatus
    retired_at: datetime
    actor: str
    reason: str


class QuietRun(NamedTuple):
    """A run whose events are in the log, from which number to which, and when the last was persisted."""

    run_id: str
    first_seq: int
    last_seq: int
    last_event_at: datetime

    @property
    def events(self) -> int:
        """How many events of it are in the log: numbers have no gaps."""
        return self.last_seq - self.first_seq + 1


def quiet_runs(before: datetime) -> Select[Any]:
    """Select the runs that have events in the log, but none since a time; the oldest first."""
    retired = select(func.max(retired_run.c.last_seq)).where(retired_run.c.run_id == run_head.c.run_id)
    last = (run_event.c.run_number == run_head.c.number) & (run_event.c.run_seq == run_head.c.last_seq)
    return (
        select(
            run_head.c.run_id,
            func.coalesce(retired.scalar_subquery(), 0) + 1,
            run_head.c.last_seq,
            run_event.c.persisted_at,
        )
        .join(run_event, last)
        .where(run_event.c.persisted_at < before)
        .order_by(run_head.c.number)
    )


def retirements(connection: Connection, run_id: str | None = None) -> list[RetiredRun]:
    """Return every retirement, or those of one run, in the order in which they were made."""
    query = select(*(column for column in retired_run.c if column.name != "id")).order_by(retired_run.c.id)
    if run_id is not None:
        query = query.where(retired_run.c.run_id == run_id)
    rows = connection.execute(query).mappings()
    return [RetiredRun(**{**row, "status": RunStatus(row["status"])}) for row in rows]


def retire(
    connection: Connection,
    run_id: str,
    *,
    actor: str,
    reason: str,
    at: datetime,
    last_seq: int | None = None,
) -> RetiredRun:
    """Remove the events and snapshots of a finished run; its numbers are never given out again.

    With `last_seq`, only if that is its last number: who archived so far loses nothing that came since.
    """
    snapshot, _, events = replay(partial(read_events, connection), beginning(connection, run_id))
    if events == 0:
        raise NotFound(f"run {run_id} has no events", remedy="`sealbook runs` lists the runs that have.")
    if not snapshot.status.final:
        raise IllegalMove(
            f"run {run_id} is {snapshot.status}; only a finished run can be retired",
            remedy="Let it end, or append its RunCancelled.",
        )
    if last_seq is not None and last_seq != snapshot.last_event_seq:
        raise Conflict(
            f"the last event of run {run_id} is {snapshot.last_event_seq}, and not {last_seq}",
            remedy="It said more since it was archived: archive it again.",
        )
    retired = RetiredRun(run_id, snapshot.last_event_seq, events, snapshot.status, at, actor, reason)
    # A trigger on this table removes the events, and fails if the run has moved on since it was read.
    connection.execute(
        insert(retired_run).values(
            run_id=run_id,
            last_seq=retired.last_seq,
            event_count=events,
            status=retired.status.value,
            retired_at=at,
            actor=actor,
            reason=reason,
        )
    )
    # Projectors that are about to write wait here, and will find the run retired.
    connection.execute(select(projection.c.id).order_by(projection.c.id).with_for_update())
    connection.execute(delete(run_snapshot).where(run_snapshot.c.run_id == run_id))
    return retired


def beginning(connection: Connection, run_id: str) -> RunSnapshot:
    """Return what the events of a run go on from: nothing, or how it had ended when it was retired."""
    return beginnings(connection, [run_id])[run_id]


def beginnings(connection: Connection, run_ids: Iterable[str]) -> dict[str, RunSnapshot]:
    """Return the beginning of each of many runs."""
    found = {run_id: RunSnapshot.pending(run_id) for run_id in run_ids}
    rows = encode_rows({"run_id": run_id} for run_id in found)
    for run_id, last_seq, status in connection.execute(_retirements(connection.dialect.name), rows):
        found[run_id] = RunSnapshot(run_id, RunStatus(status), last_seq)
    return found


@cache
def _retirements(dialect: str) -> Select[Any]:
    """Ask when runs were retired, the last time last."""
    given = given_rows(dialect, [retired_run.c.run_id])
    query = select(retired_run.c.run_id, retired_run.c.last_seq, retired_run.c.status)
    return query.join(given, retired_run.c.run_id == given.c.run_id).order_by(retired_run.c.last_seq)
