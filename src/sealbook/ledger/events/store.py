"""The ledger's run-event store, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import Connection

from sealbook.errors import InvalidInput
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.append import append, lock_runs
from sealbook.ledger.events.horizon import refuse_from_the_future
from sealbook.ledger.events.port import AppendResult
from sealbook.ledger.events.projector import BATCH, LEASE, Projector
from sealbook.ledger.events.reader import RunStoreReader, check_run_id
from sealbook.ledger.events.retention import QuietRun, RetiredRun, quiet_runs, retire
from sealbook.ledger.events.snapshots import RunSnapshots
from sealbook.model.events import RunEvent
from sealbook.model.partition_events import FACT_TYPES
from sealbook.model.verdict import check_text


class SqlRunStore(RunStoreReader):
    """The log of run events, its feed, and the snapshots projected from it."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        super().__init__(database)
        self._clock = clock

    def append_event(self, event: RunEvent) -> AppendResult:
        """Store an event once; a key that is stored already returns its number (R-EVT-4)."""
        return self.append_events([event])[0]

    def append_events(self, events: Iterable[RunEvent]) -> list[AppendResult]:
        """Store events of one or many runs in one transaction; results come in the order given.

        A connection that is lost on the way is opened again and the events are appended again: each counts
        once, though the results may then say that they were stored before.
        """
        batch = list(events)
        for event in batch:
            _check_event(event)

        def work(connection: Connection) -> list[AppendResult]:
            lock_runs(connection, {event.run_id for event in batch})
            # The clock is read once the runs are ours: that is when they are persisted (R-EVT-9).
            at = self._clock.now(connection)
            told = {event.run_id for event in batch if event.event_type in FACT_TYPES}
            refuse_from_the_future(connection, told, at)
            return append(connection, batch, at)

        return self._database.write(work, repeatable=True) if batch else []

    def projector(self, *, lease: timedelta = LEASE, batch: int = BATCH) -> Projector:
        """Return a projector of the snapshots that `get_snapshot` and `list_runs` read."""
        return Projector(self._database, self, RunSnapshots(), self._clock, lease=lease, batch=batch)

    def quiet_runs(self, age: timedelta) -> list[QuietRun]:
        """Return the runs in the log that have said nothing for so long, the oldest first."""
        with self._database.read() as connection:
            query = quiet_runs(self._clock.now(connection) - age)
            return [QuietRun(*row) for row in connection.execute(query)]

    def retire_run(self, run_id: str, *, actor: str, reason: str, last_seq: int | None = None) -> RetiredRun:
        """Remove a finished run as a whole, and record who did so and why (R-EVT-5).

        With `last_seq`, Conflict unless that is the last number of the run.
        """
        check_run_id(run_id)
        check_text("actor", actor)
        check_text("reason", reason)

        def work(connection: Connection) -> RetiredRun:
            at = self._clock.now(connection)
            return retire(connection, run_id, actor=actor, reason=reason, at=at, last_seq=last_seq)

        return self._database.write(work)


def _check_event(value: object) -> None:
    if not isinstance(value, RunEvent):
        raise InvalidInput.of("event", value, "a RunEvent")
