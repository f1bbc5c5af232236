"""How far a ledger is: a few numbers, one of which moves whenever a page would show something else."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, func, select

from sealbook.ledger.events.feed import feed_horizon
from sealbook.ledger.events.tables import projection, run_event
from sealbook.ledger.pointers.tables import cut, warehouse_version
from sealbook.ledger.states.tables import override_log


class Position(NamedTuple):
    """Positions of the log, of what was projected from it, of what is published and of what was done by hand.

    What control keeps (leases, work, budgets) has no position: whoever shows that looks again in a while.
    """

    feed: int
    projected: int
    version: int
    override: int
    cuts: int

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> Position | None:
        """Read a position from its text; None if it is none."""
        parts = text.split(".")
        if len(parts) != len(cls._fields) or not all(part.isascii() and part.isdigit() for part in parts):
            return None
        numbers = [int(part) for part in parts]
        return cls(*numbers) if max(numbers) < 2**63 else None


_POSITION = select(
    *(
        func.coalesce(each.scalar_subquery(), 0)
        for each in (
            select(func.max(run_event.c.position)),
            select(func.sum(projection.c.position)),
            select(func.max(warehouse_version.c.version)),
            select(func.max(override_log.c.id)),
            select(func.count()).select_from(cut),
        )
    )
)


def read_position(connection: Connection) -> Position:
    """Return how far the ledger is, by statements that look at the ends of indexes."""
    # What may yet come between is not passed over: it is known only after the end of the log is.
    horizon = feed_horizon(connection)
    feed, *others = map(int, connection.execute(_POSITION).one())
    return Position(min(feed, horizon), *others)
