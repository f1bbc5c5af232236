"""The projection of run snapshots, and how it heals where a store shows gaps (R-EVT-7, R-EVT-9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import cast

from sqlalchemy import Connection, Executable, bindparam, delete, func, select

from sealbook.ledger.db.bulk import encode_rows, incoming, insert_rows, update_rows
from sealbook.ledger.events.port import FeedEvent
from sealbook.ledger.events.replay import Replayed
from sealbook.ledger.events.tables import projection, retired_run, run_snapshot
from sealbook.model.events import RunEvent
from sealbook.model.run_fold import fold_all
from sealbook.model.run_snapshot import RunSnapshot

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
    def of(cls, projection_id: int, snapshot: RunSnapshot, text: str, event_count: int) -> _Row:
        return cls(
            projection_id,
            snapshot.run_id,
            snapshot.last_event_seq,
            event_count,
            None,
            snapshot.status.value,
            text,
        )

    @classmethod
    def pending(cls, projection_id: int, run_id: str) -> _Row:
        snapshot = RunSnapshot.pending(run_id)
        return cls.of(projection_id, snapshot, snapshot.to_json(), 0)

    def after(self, log: Sequence[RunEvent], texts: _Texts, *, resync: bool) -> _Row:
        """Fold what the feed says of the run, or mark it stale where the feed left something out.

        Numbers begin with 1. A run whose numbers are not all there may yet get the missing ones, so it is
        read again whenever it moves.
        """
        numbers = [cast("int", event.run_seq) for event in log]
        whole = self.stale_seq is None and self.event_count == self.last_event_seq
        fresh = [event for event, number in zip(log, numbers, strict=True) if number > self.last_event_seq]
        if whole and not fresh:
            return self  # a feed may say a thing again
        follows = all(event.run_seq == self.last_event_seq + 1 + index for index, event in enumerate(fresh))
        if not whole or not follows or resync:
            return replace(self, stale_seq=max(self.stale_seq or 0, self.last_event_seq, *numbers))
        snapshot = fold_all(texts.read(self.snapshot), fresh)
        return _Row.of(self.projection_id, snapshot, texts.write(snapshot), self.event_count + len(fresh))


class _Texts:
    """Snapshots as text and back. What the last batch wrote is known by its text, and need not be read."""

    def __init__(self) -> None:
        self._last: dict[str, RunSnapshot] = {}
        self._now: dict[str, RunSnapshot] = {}

    def next_batch(self) -> None:
        """Remember what was written since the last call, and nothing older."""
        self._last, self._now = self._now, {}

    def read(self, text: str) -> RunSnapshot:
        """Return the snapshot that a text says."""
        return self._last.get(text) or RunSnapshot.from_json(text)

    def write(self, snapshot: RunSnapshot) -> str:
        """Return the text of a snapshot."""
        text = snapshot.to_json()
        self._now[text] = snapshot
        return text


class RunSnapshots:
    """Snapshots of runs, projected from the feed."""

    name = RUNS

    def __init__(self) -> None:
        self._texts = _Texts()

    def apply(
        self, connection: Connection, projection_id: int, events: Sequence[FeedEvent], *, resync: bool
    ) -> None:
        """Fold events into the snapshots of their runs; with `resync`, have the runs read again instead."""
        by_run: dict[str, list[RunEvent]] = {}
        for each in events:
            by_run.setdefault(each.event.run_id, []).append(each.event)
        retired = _retired(connection, by_run)
        before = _load(connection, projection_id, by_run)
        after: dict[str, _Row] = {}
        self._texts.next_batch()
        for run_id, log in by_run.items():
            kept = [event for event in log if cast("int", event.run_seq) > retired.get(run_id, 0)]
            if kept:
                row = before.get(run_id) or _Row.pending(projection_id, run_id)
                after[run_id] = row.after(kept, self._texts, resync=resync)
        _write(connection, before, after.values())

    def stale(self, connection: Connection, projection_id: int) -> list[str]:
        """Return the runs that are to be read again."""
        query = select(run_snapshot.c.run_id).where(
            run_snapshot.c.projection_id == projection_id, run_snapshot.c.stale_seq.is_not(None)
        )
        return list(connection.execute(query.order_by(run_snapshot.c.run_id)).scalars())

    def heal(self, connection: Connection, projection_id: int, replayed: Replayed) -> bool:
        """Put what a stale run's whole log says in place; False if the log does not say enough yet."""
        snapshot, events = replayed
        row = _load(connection, projection_id, [snapshot.run_id]).get(snapshot.run_id)
        if row is None or row.stale_seq is None:
            return True  # it was retired, or healed by another
        if snapshot.last_event_seq < row.stale_seq:
            return False
        _write(connection, {row.run_id: row}, [_Row.of(projection_id, snapshot, snapshot.to_json(), events)])
        return True

    def discard(self, connection: Connection) -> None:
        """Remove the snapshots of projections that are no more."""
        kept = select(projection.c.id)
        connection.execute(delete(run_snapshot).where(run_snapshot.c.projection_id.not_in(kept)))


def read_projected(connection: Connection, run_id: str) -> ProjectedRun | None:
    """Return the snapshot of a run as it was projected."""
    row = connection.execute(_READ_ONE, {"run_id": run_id}).one_or_none()
    return None if row is None else _projected(*row)


def list_projected(connection: Connection, limit: int, before: str | None) -> list[ProjectedRun]:
    """Return projected snapshots, the latest run_id first, from below `before` on."""
    query = _READ if before is None else _READ.where(run_snapshot.c.run_id < before)
    rows = connection.execute(query.order_by(run_snapshot.c.run_id.desc()).limit(limit))
    return [_projected(*row) for row in rows]


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


def _retired(connection: Connection, run_ids: Iterable[str]) -> dict[str, int]:
    """Return up to which number the events of retired runs are gone."""
    asked = encode_rows({"run_id": run_id} for run_id in run_ids)
    return dict(connection.execute(_retirements(connection.dialect.name), asked).all())


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
    asked = incoming(dialect, [run_snapshot.c.run_id])
    of_run = (run_snapshot.c.projection_id == bindparam("id")) & (run_snapshot.c.run_id == asked.c.run_id)
    return select(run_snapshot).join(asked, of_run)


@cache
def _retirements(dialect: str) -> Executable:
    asked = incoming(dialect, [retired_run.c.run_id])
    latest = select(retired_run.c.run_id, func.max(retired_run.c.last_seq).label("last_seq"))
    return latest.join(asked, retired_run.c.run_id == asked.c.run_id).group_by(retired_run.c.run_id)
