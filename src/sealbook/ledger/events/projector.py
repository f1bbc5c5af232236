"""The projector: it takes the feed into a projection, exactly once, however often it dies (R-EVT-8)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable
from uuid import uuid4

from sqlalchemy import Connection

from sealbook.errors import Conflict, UnknownOutcome
from sealbook.ledger.db import leases
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events import projections
from sealbook.ledger.events.lag import Lag
from sealbook.ledger.events.port import Backlog, EventFeed, FeedEvent
from sealbook.ledger.events.projections import ProjectionState
from sealbook.ledger.events.replay import Replayed, replay
from sealbook.ledger.events.watch import LISTEN_SECONDS
from sealbook.model.run_snapshot import RunSnapshot

BATCH = 10_000
"""Events that a projector takes in one transaction."""

_REBUILD_BATCHES = 2
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

    def apply(self, connection: Connection, projection_id: int, events: Sequence[FeedEvent]) -> None:
        """Take events in."""

    def discard(self, connection: Connection) -> None:
        """Remove what belongs to projections that are no more."""


@runtime_checkable
class Resyncing(Protocol):
    """What a projection can do besides, if it reads whole runs again where a feed shows gaps (R-EVT-9)."""

    def mark_stale(self, connection: Connection, projection_id: int, events: Sequence[FeedEvent]) -> None:
        """Have the runs of these events read again."""

    def stale(self, connection: Connection, projection_id: int) -> list[RunSnapshot]:
        """Return the runs that are to be read again, each as it is before the first event of its log."""

    def heal(self, connection: Connection, projection_id: int, replayed: Replayed) -> bool:
        """Put what a stale run's whole log says in place; False if the log does not say enough yet."""


@runtime_checkable
class Inheriting(Protocol):
    """What a projection can do besides, if its rows outlive the events that they were made of (R-EVT-5)."""

    def inherit(self, connection: Connection, before: int, after: int) -> None:
        """Take over from the projection that was read so far what the log does not have any more."""


@runtime_checkable
class Selective(Protocol):
    """What a projection can do besides, if it takes only some events: the others do not put it behind."""

    def backlog(self, connection: Connection, after: int) -> Backlog:
        """Measure what concerns it and comes after a position."""


class Projector:
    """Takes a feed into a projection. Several of the same projection may run; one at a time does the work."""

    def __init__(
        self,
        database: Database,
        feed: EventFeed,
        projection: Projection,
        clock: LedgerClock,
        *,
        lease: timedelta = LEASE,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._feed = feed
        self._projection = projection
        self._clock = clock
        self._batch = batch
        self._lease = lease
        self._holder = uuid4().hex
        self._fences: dict[str, int] = {}
        self._alerted = False

    @property
    def name(self) -> str:
        """The name of the projection."""
        return self._projection.name

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
        self.let_go()
        lag = self._lag(state.position)
        self._alert(lag)
        return lag

    def follow(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Take in events as they come, until asked to stop; where the lag is high, say so and resync."""
        try:
            with self._feed.watch() as watch:
                while not stop():
                    watch.rest(found=self.look(), at_most=LISTEN_SECONDS)
        finally:  # by Ctrl-C too: whoever comes next need not wait for the lease to run out
            self.let_go()

    def look(self) -> bool:
        """Take in a batch of what has come, and keep the lease; False if nothing has. For who follows."""
        found = self._take_batch(self._active(), keep=True, may_resync=True)
        self._heal(self._active())
        return found

    def rebuild(self) -> None:
        """Project everything anew from the start of the feed, then swap; until then, reads go on as before.

        Other projectors go on too. A rebuild that died is begun from zero by the next.
        """
        self._database.write(self._begin_building)
        while True:
            ahead = self._active().position
            state = self._building()
            if self._take_batch(state, keep=True):
                continue
            self._heal(state)
            if self._swap(state, ahead):
                break
            time.sleep(_PAUSE_SECONDS)
        self._database.write(self._projection.discard)

    def _take_batch(self, state: ProjectionState, *, keep: bool = False, may_resync: bool = False) -> bool:
        """Take in a batch, and keep the lease if asked to or if more is there; False if none was."""
        with self._database.read() as connection:
            now = self._clock.now(connection)
            if not leases.find(connection, state.lease).is_free_for(self._holder, now):
                return False  # before the feed is read for nothing
        limit = self._batch if state.active else self._batch * _REBUILD_BATCHES
        events = self._feed.fetch_feed(state.position, limit)
        if not events:
            return False
        resync = state.active and self._is_far_behind(events, now) and may_resync

        def work(connection: Connection) -> bool:
            if not self._move(connection, state, events[-1].position):
                return False
            if resync and isinstance(self._projection, Resyncing):
                self._projection.mark_stale(connection, state.id, events)
            else:
                self._projection.apply(connection, state.id, events)
            if not keep and len(events) < limit:
                self._release(connection)
            return True

        return self._write(work)

    def _heal(self, state: ProjectionState) -> None:
        """Read stale runs again, and let them resume where their log says enough (R-EVT-9)."""
        projection = self._projection
        if not isinstance(projection, Resyncing):
            return
        with self._database.read() as connection:
            stale = projection.stale(connection, state.id)
        for run in stale:
            replayed = replay(self._feed.fetch_events, run)

            def work(connection: Connection, replayed: Replayed = replayed) -> bool:
                return self._move(connection, state, state.position) and projection.heal(
                    connection, state.id, replayed
                )

            self._write(work)

    def _is_far_behind(self, events: Sequence[FeedEvent], now: datetime) -> bool:
        lag = Lag.of(Backlog(len(events), events[0].event.persisted_at, events[-1].position), now)
        self._alert(lag)
        return lag.needs_resync

    def _alert(self, lag: Lag) -> None:
        """Log that the lag is high, once until it is not."""
        if lag.alert and not self._alerted:
            _log.warning("%s: projection %s is %.1f s behind", lag.alert, self._projection.name, lag.seconds)
        self._alerted = lag.alert is not None

    def _begin_building(self, connection: Connection) -> None:
        name, lease = self._projection.name, projections.rebuild_lease(self._projection.name)
        if not self._claim(connection, lease):
            held = leases.find(connection, lease)
            raise Conflict(
                f"projection {name} is being rebuilt by another, who holds it until {held.expires_at}",
                remedy="Let it end; if it died, try again after that time.",
            )
        left = projections.find(connection, name, active=False)
        if left is not None:
            projections.abandon(connection, left)
            self._projection.discard(connection)
        projections.begin(connection, name, active=False)

    def _building(self) -> ProjectionState:
        name = self._projection.name
        with self._database.read() as connection:
            state = projections.find(connection, name, active=False)
            holder = leases.find(connection, projections.rebuild_lease(name)).holder
        if state is None or holder != self._holder:
            raise Conflict(
                f"another took over the rebuild of projection {name}",
                remedy="Let it end. This one lost its lease: the machine may be too busy, or was asleep.",
            )
        return state

    def _swap(self, state: ProjectionState, ahead: int) -> bool:
        """Let what was built be read, if it has all that is read now, which was `ahead` a moment ago."""
        # What lies between was retired since, unless the feed holds back what it has shown before: an append
        # that began meanwhile may have announced an older position than its own.
        if ahead > state.position and self._feed.backlog(state.position).events:
            return False
        reached = max(state.position, ahead)

        def work(connection: Connection) -> bool:
            before = projections.find(connection, state.name)
            swapped = self._claim(connection, state.lease) and projections.swap(connection, state, reached)
            if swapped and before is not None and isinstance(self._projection, Inheriting):
                self._projection.inherit(connection, before.id, state.id)
            if swapped:
                self._release(connection)
            return swapped

        return self._database.write(work)

    def _active(self) -> ProjectionState:
        with self._database.read() as connection:
            state = projections.find(connection, self._projection.name)
        return state or self._database.write(lambda c: projections.begin(c, self._projection.name))

    def _move(self, connection: Connection, state: ProjectionState, to: int) -> bool:
        return self._claim(connection, state.lease) and projections.move(connection, state, to)

    def _claim(self, connection: Connection, lease: str) -> bool:
        claimed = leases.claim(connection, [lease], self._holder, self._clock.now(connection), self._lease)
        self._fences |= claimed
        return lease in claimed

    def _release(self, connection: Connection) -> None:
        leases.release(connection, self._fences)
        self._fences.clear()

    def let_go(self) -> None:
        """Give up the lease, so that another can go on at once."""
        if held := dict(self._fences):
            self._database.write(lambda connection: leases.release(connection, held))
            self._fences.clear()

    def _write(self, work: Callable[[Connection], bool]) -> bool:
        try:
            return self._database.write(work)
        except UnknownOutcome:
            return False  # the position says where to go on, whether it was written or not

    def _lag(self, position: int) -> Lag:
        projection = self._projection
        backlog = self._feed.backlog(position)
        with self._database.read() as connection:
            if backlog.events and isinstance(projection, Selective):
                backlog = projection.backlog(connection, position)
            return Lag.of(backlog, self._clock.now(connection))
