"""Turns: of several who tell others what the ledger has, one does so at a time, under a lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from sqlalchemy import Connection

from sealbook.errors import Conflict
from sealbook.ledger.db import leases
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database

TURN = timedelta(minutes=2)
"""How long one who died keeps others from their turn; longer than any receiver may take for a batch."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is held."""

    doing: str
    _clock: LedgerClock
    _lease: str
    _fence: int

    def renew(self, connection: Connection) -> datetime:
        """Return the time, in a transaction in which nobody else can take the turn; Conflict if one has."""
        at = self._clock.now(connection)
        if not leases.heartbeat(connection, {self._lease: self._fence}, at, TURN):
            raise Conflict(
                f"another took over the sending of {self.doing}",
                remedy="Let it end. This one lost its lease: the machine may be too busy, or was asleep.",
            )
        return at


@contextmanager
def have_turn(database: Database, clock: LedgerClock, name: str, doing: str) -> Iterator[Turn]:
    """Have a turn of a name while the block lasts; Conflict if another is sending what is named."""
    holder = uuid4().hex

    def claim(connection: Connection) -> int:
        claimed = leases.claim(connection, [name], holder, clock.now(connection), TURN)
        if name not in claimed:
            until = leases.find(connection, name).expires_at
            raise Conflict(
                f"another is sending {doing}, and has its turn until {until}",
                remedy="Let it end; if it died, try again after that time. Nothing is lost.",
            )
        return claimed[name]

    fence = database.write(claim)
    try:
        yield Turn(doing, clock, name, fence)
    finally:
        database.write(lambda connection: leases.release(connection, {name: fence}))
