"""Reading the run-event log: events, snapshots and the feed, with no way to change them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from sealbook.errors import InvalidInput
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import stream
from sealbook.ledger.events import snapshots
from sealbook.ledger.events.feed import fetch_feed, measure_backlog, partitions_after
from sealbook.ledger.events.port import PAGE, Backlog, FeedEvent, Watch
from sealbook.ledger.events.replay import replay
from sealbook.ledger.events.retention import RetiredRun, beginning, retirements
from sealbook.ledger.events.rows import SELECT_EVENTS, event_from_row, of_run, read_events
from sealbook.ledger.events.snapshots import ProjectedRun
from sealbook.ledger.events.tables import run_event
from sealbook.ledger.events.watch import follow, watch
from sealbook.model.events import MAX_SEQ, RunEvent
from sealbook.model.run_snapshot import RunSnapshot, RunStatus
from sealbook.model.wire import is_storable


class RunStoreReader:
    """The log of run events, its feed, and the snapshots projected from it, for whoever only reads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def fetch_events(self, run_id: str, after_seq: int = 0, limit: int = PAGE) -> list[RunEvent]:
        """Return the events of a run with a number above `after_seq`, in the order of their numbers."""
        check_run_id(run_id)
        _check_number("after_seq", after_seq, 0)
        _check_number("limit", limit, 1)
        with self._database.read() as connection:
            return read_events(connection, run_id, after_seq, limit)

    def get_snapshot(self, run_id: str) -> RunSnapshot | None:
        """Return a run's snapshot as of now: what was projected, and what came since; None if unknown."""
        check_run_id(run_id)
        with self._database.read() as connection:
            projected = snapshots.read_projected(connection, run_id)
            known = projected.snapshot if projected and not projected.stale else None
            base = known or beginning(connection, run_id)
        snapshot, _, events = replay(self.fetch_events, base)
        return snapshot if projected or events else None

    def project_snapshot(self, run_id: str) -> RunSnapshot:
        """Replay a run's events from the first, or from how it had ended when it was retired."""
        check_run_id(run_id)
        with self._database.read() as connection:
            base = beginning(connection, run_id)
        return replay(self.fetch_events, base).snapshot

    def list_runs(
        self, limit: int = PAGE, before: str | None = None, statuses: Iterable[RunStatus] | None = None
    ) -> list[ProjectedRun]:
        """Return runs as they were projected, the latest first; `before` is the last of the page before."""
        _check_number("limit", limit, 1)
        if before is not None:
            check_run_id(before)
        with self._database.read() as connection:
            return snapshots.list_projected(connection, limit, before, statuses)

    def fetch_feed(self, after: int = 0, limit: int = PAGE) -> list[FeedEvent]:
        """Return the events of all runs after a position, in the order of their commits (R-EVT-8)."""
        _check_number("after", after, 0)
        _check_number("limit", limit, 1)
        return fetch_feed(self._database, after, limit)

    def partitions_after(self, after: int, limit: int = PAGE) -> list[str]:
        """Return the keys of partitions that events after a position tell of, each once, in no order."""
        _check_number("after", after, 0)
        _check_number("limit", limit, 1)
        return partitions_after(self._database, after, limit)

    def backlog(self, after: int = 0) -> Backlog:
        """Measure what comes after a position of the feed."""
        _check_number("after", after, 0)
        return measure_backlog(self._database, after)

    def retirements(self, run_id: str | None = None) -> list[RetiredRun]:
        """Return what was taken out of the log, of all runs or of one, in the order in which it was."""
        with self._database.read() as connection:
            return retirements(connection, run_id)

    def events_by_partition(self, run_id: str, last_seq: int) -> Iterator[FeedEvent]:
        """Stream the events of a run up to a number, partition by partition, each in the order of commits."""
        check_run_id(run_id)
        query = SELECT_EVENTS.where(of_run(run_id), run_event.c.run_seq <= last_seq).order_by(
            run_event.c.partition.nulls_first(), run_event.c.position
        )
        return stream(self._database, query, lambda *row: FeedEvent(row[0], event_from_row(row)))

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


def check_run_id(value: object) -> None:
    """Refuse what no run can be named."""
    if not isinstance(value, str) or not is_storable(value):
        raise InvalidInput.of("run_id", value, "text without NUL characters and lone surrogates")


def _check_number(field: str, value: object, least: int) -> None:
    if type(value) is not int or not least <= value <= MAX_SEQ:
        raise InvalidInput.of(field, value, f"a whole number from {least}")
