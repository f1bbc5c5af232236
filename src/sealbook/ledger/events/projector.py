"""The projector: it takes the feed into a projection, exactly once, however often it dies (R-EVT-8)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import uuid4

from sqlalchemy import Connection

from sealbook.clock import Clock
from sealbook.errors import Conflict, UnknownOutcome
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.types import in_utc
from sealbook.ledger.events import projections
from sealbook.ledger.events.lag import Lag
from sealbook.ledger.events.port import Backlog, EventFeed, FeedEvent
from sealbook.ledger.events.projections import ProjectionState, Worker
from sealbook.ledger.events.replay import Replayed, replay
from sealbook.ledger.events.watch import LISTEN_SECONDS
from sealbook.model.run_snapshot import RunSnapshot

BATCH = 5_000
"""Events that a projector takes in one transaction."""

_REBUILD_BATCHES = 4
"""Batches that a rebuild takes at once: nobody reads what is between, and a long run is written seldom."""

LEASE = timedelta(seconds=5)
"""How long a projector that died keeps others of its name from going on."""

_PAUSE_SECONDS = 0.02

_log = logging.getLogger(__name__)


class Projection(Protocol):
    """What a projector writes. It writes in the projector's transaction, and nowhere else."""

    @property
    def name(self) -> str:
        """What projectors of it are known by."""

    def apply(
        self, connection: Connection, projection_id: int, events: Sequence[FeedEvent], *, resync: bool
    ) -> None:
        """Take events in; with `resync`, mark their runs stale instead."""

    def stale(self, connection: Connection, projection_id: int) -> list[str]:
        """Return the runs that are to be read again."""

    def heal(self, connection: Connection, projection_id: int, replayed: Replayed) -> bool:
        """Put what a stale run's whole log says in place; False if the log does not say enough yet."""

    def discard(self, connection: Connection) -> None:
        """Remove what belongs to projections that are no more."""


class Projector:
    """Takes a feed into a projection. Several of the same projection may run; one at a time does the work."""

    def __init__(
        self,
        database: Database,
        feed: EventFeed,
        projection: Projection,
        clock: Clock,
        *,
        lease: timedelta = LEASE,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._feed = feed
        self._projection = projection
        self._clock = clock
        self._batch = batch
        self._worker = Worker(uuid4().hex, lease)
        self._alerted = False

    def lag(self) -> Lag:
        """Measure how far what is read is behind the log."""
        return self._lag(self._active().position)

    def catch_up(self, patience: float = 2 * LEASE.total_seconds()) -> Lag:
        """Take in all that the log has now, or wait until another projector has; return what is left.

        Cheap where there is nothing to do: every command that appends calls it, and no daemon is needed.
        """
        deadline = time.monotonic() + patience
        end = self._feed.backlog(self._active().position).end
        while (state := self._active()).position < end:
            if not self._take_batch(state):
                # Another projector is at it, or an append that began before ours is still in flight.
                if self._feed.backlog(state.position).events == 0 or time.monotonic() > deadline:
                    break
                time.sleep(_PAUSE_SECONDS)
        self._heal(state)
        self._let_go()
        return self._lag(state.position)

    def follow(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Take in events as they come, until told to stop; where the lag is high, say so, and then resync."""
        try:
            with self._feed.watch() as watch:
                while not stop():
                    found = self._take_batch(self._active(), keep=True, watchful=True)
                    self._heal(self._active(), keep=True)
                    watch.rest(found=found, at_most=LISTEN_SECONDS)
        finally:  # by Ctrl-C too: whoever comes next need not wait for the lease to run out
            self._let_go()

    def rebuild(self) -> None:
        """Project everything anew from the start of the feed, then swap; until then, reads go on as before.

        Other projectors go on too. A rebuild that died is begun from zero by the next.
        """
        self._database.write(self._begin_building)
        while True:
            ahead = self._active().position
            state = self._building()
            if self._take_batch(state, keep=True, batches=_REBUILD_BATCHES):
                continue
            self._heal(state, keep=True)
            # The feed has no more, so what lies between here and `ahead` was retired since.
            reached = max(state.position, ahead)
            if self._database.write(lambda c: projections.swap(c, state, self._worker, reached)):  # noqa: B023
                break
        self._database.write(self._projection.discard)

    def _take_batch(
        self, state: ProjectionState, *, keep: bool = False, watchful: bool = False, batches: int = 1
    ) -> bool:
        """Take in a batch or more, and keep the lease if asked to or if more is there; False if none was."""
        if not state.is_free_for(self._worker, self._now()):
            return False
        limit = self._batch * batches
        events = self._feed.fetch_feed(state.position, limit)
        if not events:
            return False
        resync = watchful and self._is_far_behind(events)
        keep = keep or len(events) == limit

        def work(connection: Connection) -> bool:
            to = events[-1].position
            if not projections.move(connection, state, self._worker, to, self._now(), keep=keep):
                return False
            self._projection.apply(connection, state.id, events, resync=resync)
            return True

        return self._write(work)

    def _heal(self, state: ProjectionState, *, keep: bool = False) -> None:
        """Read stale runs again, and let them resume where their log says enough (R-EVT-9)."""
        with self._database.read() as connection:
            stale = self._projection.stale(connection, state.id)
        for run_id in stale:
            replayed = replay(self._feed.fetch_events, RunSnapshot.pending(run_id))

            def work(connection: Connection, replayed: Replayed = replayed) -> bool:
                to = state.position
                return projections.move(
                    connection, state, self._worker, to, self._now(), keep=keep
                ) and self._projection.heal(connection, state.id, replayed)

            self._write(work)

    def _is_far_behind(self, events: Sequence[FeedEvent]) -> bool:
        lag = Lag.of(Backlog(len(events), events[0].event.persisted_at, events[-1].position), self._now())
        if lag.alert and not self._alerted:
            _log.warning("%s: projection %s is %.1f s behind", lag.alert, self._projection.name, lag.seconds)
        self._alerted = lag.alert is not None
        return lag.needs_resync

    def _begin_building(self, connection: Connection) -> None:
        name, now = self._projection.name, self._now()
        left = projections.find(connection, name, active=False)
        if left is not None and not left.is_free_for(self._worker, now):
            raise Conflict(
                f"projection {name} is being rebuilt by another, who holds it until {left.held_until}",
                remedy="Let it end; if it died, try again after that time.",
            )
        if left is not None:
            projections.abandon(connection, left)
            self._projection.discard(connection)
        state = projections.begin(connection, name, active=False)
        projections.move(connection, state, self._worker, 0, now, keep=True)

    def _building(self) -> ProjectionState:
        with self._database.read() as connection:
            state = projections.find(connection, self._projection.name, active=False)
        if state is None or state.holder != self._worker.name:
            raise Conflict(
                f"another took over the rebuild of projection {self._projection.name}",
                remedy="Let it end. This one lost its lease: the machine may be too busy, or was asleep.",
            )
        return state

    def _active(self) -> ProjectionState:
        with self._database.read() as connection:
            state = projections.find(connection, self._projection.name)
        return state or self._database.write(lambda c: projections.begin(c, self._projection.name))

    def _let_go(self) -> None:
        state = self._active()
        if state.holder == self._worker.name:
            self._write(
                lambda c: projections.move(c, state, self._worker, state.position, self._now(), keep=False)
            )

    def _write(self, work: Callable[[Connection], bool]) -> bool:
        try:
            return self._database.write(work)
        except UnknownOutcome:
            return False  # the position says where to go on, whether it was written or not

    def _lag(self, position: int) -> Lag:
        return Lag.of(self._feed.backlog(position), self._now())

    def _now(self) -> datetime:
        return in_utc(self._clock())
