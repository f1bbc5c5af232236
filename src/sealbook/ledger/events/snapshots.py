"""The projection of run snapshots, and how it heals where a store shows gaps (R-EVT-7, R-EVT-9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import cast

from sqlalchemy import Connection, Executable, bindparam, delete, select

from sealbook.ledger.db.bulk import encode_rows, given_rows, insert_rows, update_rows
from sealbook.ledger.events.port import FeedEvent
from sealbook.ledger.events.replay import Replayed
from sealbook.ledger.events.retention import beginning, beginnings
from sealbook.ledger.events.tables import projection, run_snapshot
from sealbook.model.events import RunEvent
from sealbook.model.run_fold import fold_all
from sealbook.model.run_snapshot import RunSnapshot, RunStatus

RUNS = "runs"
"""The name of the projection that `get_snapshot` reads."""

_OUTCOME = ("last_event_seq", "event_count", "stale_seq", "status", "snapshot")


@dataclass(frozen=True, slots=True)
class ProjectedRun:
    """A snapshot as it was projected. `stale` says that the run is to be read again (R-EVT-9)."""

    snapshot: RunSnapshot
    stale: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of run_snapshot, in the order of its columns."""

    projection_id: int
    run_id: str
    last_event_seq: int
    event_count: int
    stale_seq: int | None
    status: str
    snapshot: str

    @classmethod
    def of(cls, projection_id: int, snapshot: RunSnapshot, event_count: int) -> _Row:
        return cls(
            projection_id,
            snapshot.run_id,
            snapshot.last_event_seq,
            event_count,
            None,
            snapshot.status.value,
            snapshot.to_json(),
        )

    def after(self, log: Sequence[RunEvent]) -> _Row:
        """Fold what the feed says of the run, or mark it stale where the feed left something out.

        Numbers begin with 1. A run whose numbers are not all there may yet get the missing ones, so it is
        read again whenever it moves.
        """
        whole = self.stale_seq is None and self.event_count == self.last_event_seq
        fresh = [event for event in log if _number(event) > self.last_event_seq]
        if whole and not fresh:
            return self  # a feed may say a thing again
        follows = all(_number(event) == self.last_event_seq + nth for nth, event in enumerate(fresh, 1))
        if not whole or not follows:
            return self.marked_stale(log)
        snapshot = fold_all(RunSnapshot.from_json(self.snapshot), fresh)
        return _Row.of(self.projection_id, snapshot, self.event_count + len(fresh))

    def marked_stale(self, log: Sequence[RunEvent]) -> _Row:
        """Have the run read again, as far as the feed has been."""
        numbers = (_number(event) for event in log)
        return replace(self, stale_seq=max(self.stale_seq or 0, self.last_event_seq, *numbers))


class RunSnapshots:
    """Snapshots of runs, projected from the feed."""

    name = RUNS

    def apply(self, connection: Connection, projection_id: int, events: Sequence[FeedEvent]) -> None:
        """Fold events into the snapshots of their runs."""
        _change(connection, projection_id, events, _Row.after)

    def mark_stale(self, connection: Connection, projection_id: int, events: Sequence[FeedEvent]) -> None:
        """Have the runs of these events read again."""
        _change(connection, projection_id, events, _Row.marked_stale)

    def stale(self, connection: Connection, projection_id: int) -> list[RunSnapshot]:
        """Return the runs that are to be read again, each as it is before the first event of its log."""
        query = select(run_snapshot.c.run_id).where(
            run_snapshot.c.projection_id == projection_id, run_snapshot.c.stale_seq.is_not(None)
        )
        run_ids = connection.execute(query.order_by(run_snapshot.c.run_id)).scalars().all()
        return list(beginnings(connection, run_ids).values()) if run_ids else []

    def heal(self, connection: Connection, projection_id: int, replayed: Replayed) -> bool:
        """Put what a stale run's whole log says in place; False if the log does not say enough yet."""
        snapshot, onto, events = replayed
        row = _load(connection, projection_id, [snapshot.run_id]).get(snapshot.run_id)
        if row is None or row.stale_seq is None:
            return True  # it was retired, or healed by another
        if snapshot.last_event_seq < row.stale_seq or onto != beginning(connection, row.run_id):
            return False
        healed = _Row.of(projection_id, snapshot, onto.last_event_seq + events)
        _write(connection, {row.run_id: row}, [healed])
        return True

    def discard(self, connection: Connection) -> None:
        """Remove the snapshots of projections that are no more."""
        kept = select(projection.c.id)
        connection.execute(delete(run_snapshot).where(run_snapshot.c.projection_id.not_in(kept)))


def read_projected(connection: Connection, run_id: str) -> ProjectedRun | None:
    """Return the snapshot of a run as it was projected."""
    row = connection.execute(_READ_ONE, {"run_id": run_id}).one_or_none()
    return None if row is None else _projected(*row)


def list_projected(
    connection: Connection, limit: int, before: str | None, statuses: Iterable[RunStatus] | None
) -> list[ProjectedRun]:
    """Return projected snapshots, the latest run_id first, from below `before` on, of these statuses."""
    query = _READ if before is None else _READ.where(run_snapshot.c.run_id < before)
    if statuses is not None:
        query = query.where(run_snapshot.c.status.in_([each.value for each in statuses]))
    rows = connection.execute(query.order_by(run_snapshot.c.run_id.desc()).limit(limit))
    return [_projected(*row) for row in rows]


def ended_runs(connection: Connection, run_ids: Iterable[str]) -> set[str]:
    """Return which of these runs have ended, as far as is projected."""
    asked = encode_rows({"run_id": run_id} for run_id in run_ids)
    return set(connection.execute(_ended(connection.dialect.name), asked).scalars())


def newest_unended(connection: Connection) -> list[str]:
    """Return those of the newest thousand runs that have not ended, as far as is projected."""
    newest = _ENDS.order_by(run_snapshot.c.run_id.desc()).limit(_NEWEST)
    return [run_id for run_id, status in connection.execute(newest) if not RunStatus(status).final]


_NEWEST = 1_000
_ENDS = (
    select(run_snapshot.c.run_id, run_snapshot.c.status)
    .join(projection, projection.c.id == run_snapshot.c.projection_id)
    .where(projection.c.name == RUNS, projection.c.active)
)
_READ = (
    select(run_snapshot.c.snapshot, run_snapshot.c.stale_seq)
    .join(projection, projection.c.id == run_snapshot.c.projection_id)
    .where(projection.c.name == RUNS, projection.c.active)
)
_READ_ONE = _READ.where(run_snapshot.c.run_id == bindparam("run_id"))


def _projected(snapshot: str, stale_seq: int | None) -> ProjectedRun:
    return ProjectedRun(RunSnapshot.from_json(snapshot), stale=stale_seq is not None)


def _load(connection: Connection, projection_id: int, run_ids: Iterable[str]) -> dict[str, _Row]:
    asked = encode_rows({"run_id": run_id} for run_id in run_ids)
    rows = connection.execute(_loading(connection.dialect.name), {**asked, "id": projection_id})
    return {row.run_id: _Row(*row) for row in rows}


def _change(
    connection: Connection,
    projection_id: int,
    events: Sequence[FeedEvent],
    change: Callable[[_Row, Sequence[RunEvent]], _Row],
) -> None:
    """Change the snapshot of each run that has events here; what was retired meanwhile is left out."""
    by_run: dict[str, list[RunEvent]] = {}
    for each in events:
        by_run.setdefault(each.event.run_id, []).append(each.event)
    begins = beginnings(connection, by_run)
    before = _load(connection, projection_id, by_run)
    after: list[_Row] = []
    for run_id, log in by_run.items():
        begin = begins[run_id]
        later = [event for event in log if _number(event) > begin.last_event_seq]
        if later:
            row = before.get(run_id) or _Row.of(projection_id, begin, begin.last_event_seq)
            after.append(change(row, later))
    _write(connection, before, after)


def _number(event: RunEvent) -> int:
    return cast("int", event.run_seq)  # what comes from a feed was stored


def _write(connection: Connection, before: dict[str, _Row], after: Iterable[_Row]) -> None:
    new, changed = [], []
    for row in after:
        if row.run_id not in before:
            new.append(astuple(row))
        elif row is not before[row.run_id]:
            changed.append(astuple(row))
    if new:
        insert_rows(connection, run_snapshot, new)
    if changed:
        update_rows(connection, run_snapshot, changed, _OUTCOME)


@cache
def _loading(dialect: str) -> Executable:
    asked = given_rows(dialect, [run_snapshot.c.run_id])
    of_run = (run_snapshot.c.projection_id == bindparam("id")) & (run_snapshot.c.run_id == asked.c.run_id)
    return select(run_snapshot).join(asked, of_run)


@cache
def _ended(dialect: str) -> Executable:
    asked = given_rows(dialect, [run_snapshot.c.run_id])
    final = [status.value for status in RunStatus if status.final]
    return (
        select(run_snapshot.c.run_id)
        .join(asked, run_snapshot.c.run_id == asked.c.run_id)
        .join(projection, projection.c.id == run_snapshot.c.projection_id)
        .where(projection.c.name == RUNS, projection.c.active, run_snapshot.c.status.in_(final))
    )
