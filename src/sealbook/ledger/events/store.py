"""The ledger's run-event store, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta

from sqlalchemy import Connection

from sealbook.clock import Clock
from sealbook.errors import InvalidInput
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.types import in_utc
from sealbook.ledger.events import snapshots
from sealbook.ledger.events.append import append_all, append_one
from sealbook.ledger.events.feed import fetch_feed, measure_backlog
from sealbook.ledger.events.port import PAGE, AppendResult, Backlog, FeedEvent, Watch
from sealbook.ledger.events.projector import BATCH, LEASE, Projector
from sealbook.ledger.events.replay import replay
from sealbook.ledger.events.retention import RetiredRun, retire
from sealbook.ledger.events.rows import read_events
from sealbook.ledger.events.snapshots import ProjectedRun, RunSnapshots
from sealbook.ledger.events.watch import follow, watch
from sealbook.model.events import MAX_SEQ, RunEvent
from sealbook.model.run_snapshot import RunSnapshot
from sealbook.model.verdict import check_text
from sealbook.model.wire import is_storable


class SqlRunStore:
    """The log of run events, its feed, and the snapshots projected from it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def append_event(self, event: RunEvent) -> AppendResult:
        """Store an event once; a key that is stored already returns its number (R-EVT-4)."""
        _check_event(event)
        return append_one(self._database, event, in_utc(self._clock()))

    def append_events(self, events: Iterable[RunEvent]) -> list[AppendResult]:
        """Store events of one or many runs in one transaction; results come in the order given.

        A connection that is lost on the way is opened again and the events are told again: each counts once,
        though the results may then say that they were stored before.
        """
        batch = list(events)
        for event in batch:
            _check_event(event)
        return append_all(self._database, batch, in_utc(self._clock()))

    def fetch_events(self, run_id: str, after_seq: int = 0, limit: int = PAGE) -> list[RunEvent]:
        """Return the events of a run with a number above `after_seq`, in the order of their numbers."""
        _check_run_id(run_id)
        _check_number("after_seq", after_seq, 0)
        _check_number("limit", limit, 1)
        with self._database.read() as connection:
            return read_events(connection, run_id, after_seq, limit)

    def get_snapshot(self, run_id: str) -> RunSnapshot | None:
        """Return a run's snapshot as of now: what was projected, and what came since; None if unknown."""
        _check_run_id(run_id)
        with self._database.read() as connection:
            projected = snapshots.read_projected(connection, run_id)
        base = projected.snapshot if projected and not projected.stale else RunSnapshot.pending(run_id)
        snapshot, events = replay(self.fetch_events, base)
        return snapshot if projected or events else None

    def project_snapshot(self, run_id: str) -> RunSnapshot:
        """Replay a run's events from the first; a run without any is pending."""
        return replay(self.fetch_events, RunSnapshot.pending(run_id)).snapshot

    def list_runs(self, limit: int = PAGE, before: str | None = None) -> list[ProjectedRun]:
        """Return runs as they were projected, the latest first; `before` is the last of the page before."""
        _check_number("limit", limit, 1)
        if before is not None:
            _check_run_id(before)
        with self._database.read() as connection:
            return snapshots.list_projected(connection, limit, before)

    def fetch_feed(self, after: int = 0, limit: int = PAGE) -> list[FeedEvent]:
        """Return the events of all runs after a position, in the order of their commits (R-EVT-8)."""
        _check_number("after", after, 0)
        _check_number("limit", limit, 1)
        return fetch_feed(self._database, after, limit)

    def backlog(self, after: int = 0) -> Backlog:
        """Measure what comes after a position of the feed."""
        _check_number("after", after, 0)
        return measure_backlog(self._database, after)

    def watch(self) -> AbstractContextManager[Watch]:
        """Watch for events while the block lasts."""
        return watch(self._database)

    def follow(self, after: int = 0, *, patience: float | None = None) -> Iterator[FeedEvent]:
        """Yield the events of all runs after a position as they are committed.

        It waits for more for ever, or for `patience` seconds after the last.
        """

        def look(last: FeedEvent | None) -> list[FeedEvent]:
            return self.fetch_feed(after if last is None else last.position)

        return follow(self.watch(), look, patience)

    def follow_run(
        self, run_id: str, after_seq: int = 0, *, patience: float | None = None
    ) -> Iterator[RunEvent]:
        """Yield the events of one run as they are committed, as `follow` does for all."""

        def look(last: RunEvent | None) -> list[RunEvent]:
            return self.fetch_events(run_id, after_seq if last is None else last.run_seq or after_seq)

        return follow(self.watch(), look, patience)

    def projector(self, *, lease: timedelta = LEASE, batch: int = BATCH) -> Projector:
        """Return a projector of the snapshots that `get_snapshot` and `list_runs` read."""
        return Projector(self._database, self, RunSnapshots(), self._clock, lease=lease, batch=batch)

    def retire_run(self, run_id: str, *, actor: str, reason: str) -> RetiredRun:
        """Remove a finished run as a whole, and record who did so and why (R-EVT-5)."""
        _check_run_id(run_id)
        check_text("actor", actor)
        check_text("reason", reason)

        def work(connection: Connection) -> RetiredRun:
            return retire(connection, run_id, actor=actor, reason=reason, at=in_utc(self._clock()))

        return self._database.write(work)


def _check_event(value: object) -> None:
    if not isinstance(value, RunEvent):
        raise InvalidInput.of("event", value, "a RunEvent")


def _check_run_id(value: object) -> None:
    if not isinstance(value, str) or not is_storable(value):
        raise InvalidInput.of("run_id", value, "text without NUL characters and lone surrogates")


def _check_number(field: str, value: object, least: int) -> None:
    if type(value) is not int or not least <= value <= MAX_SEQ:
        raise InvalidInput.of(field, value, f"a whole number from {least}")
