"""Up to where somebody outside the ledger was told of the log, so that nothing is left out.

What is told cannot be taken back, so it is told first, and noted then: who dies in between tells it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection

from sealbook.errors import Conflict
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.turns import Turn, have_turn
from sealbook.ledger.events import projections
from sealbook.ledger.events.lag import Lag
from sealbook.ledger.events.port import FeedEvent
from sealbook.ledger.events.projections import ProjectionState
from sealbook.ledger.events.reader import RunStoreReader
from sealbook.ledger.status.scopes import own_backlog, runs_of
from sealbook.model.scope import DEFAULT_SCOPE, Scope

LINEAGE = "lineage"


class LogFollowerReader:
    """Says how far a follower of a scope's runs is; its place is kept beside those of projections."""

    def __init__(
        self, database: Database, clock: LedgerClock, name: str, scope: Scope = DEFAULT_SCOPE
    ) -> None:
        self._database = database
        self._clock = clock
        self._what = name
        self._scope = scope
        self._name = "/".join((name, *scope))

    def lag(self) -> Lag:
        """Measure what of the scope's runs it was not told yet."""
        with self._database.read() as connection:
            state = projections.find(connection, self._name)
            backlog = own_backlog(connection, 0 if state is None else state.position, self._scope)
            return Lag.of(backlog, self._clock.now(connection))


class LogFollower(LogFollowerReader):
    """The port of whoever tells it."""

    @contextmanager
    def turn(self) -> Iterator[LogFollowerTurn]:
        """Have a turn while the block lasts; Conflict if another has it."""
        with have_turn(self._database, self._clock, f"follower/{self._name}", self._what) as turn:
            state = self._database.write(lambda connection: projections.begin(connection, self._name))
            yield LogFollowerTurn(self._database, self._scope, turn, state)


@dataclass
class LogFollowerTurn:
    """What may be done in a turn; Conflict once it is lost."""

    _database: Database
    _scope: Scope
    _turn: Turn
    _state: ProjectionState

    def fetch(self, limit: int) -> tuple[Sequence[FeedEvent], int | None]:
        """Return what the scope's runs said next, and up to where the log was looked at; None at its end."""
        found = RunStoreReader(self._database).fetch_feed(self._state.position, limit)
        if not found:
            return [], None
        with self._database.read() as connection:
            own = runs_of(connection, {each.event.run_id for each in found}, self._scope)
        return [each for each in found if each.event.run_id in own], found[-1].position

    def advance(self, to: int) -> None:
        """Note that all up to a position was told, and renew the turn."""
        if to == self._state.position:
            return

        def work(connection: Connection) -> None:
            self._turn.renew(connection)
            if not projections.move(connection, self._state, to):
                raise Conflict(f"another has told {self._turn.doing} since", remedy="Try again.")

        self._database.write(work)
        self._state = ProjectionState(self._state.id, self._state.name, self._state.active, to)
