"""How far each projection is, and who is at work on it: its position and its lease.

A lease spares others the work. What keeps a projection right is the position: it moves only from where the
mover saw it, in the transaction that writes what was projected (R-EVT-8).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.events.tables import projection


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """A row of `projection`: the one that is read, or one that is being built anew."""

    id: int
    name: str
    active: bool
    position: int
    holder: str | None
    held_until: datetime | None

    def is_free_for(self, worker: Worker, at: datetime) -> bool:
        """Tell whether no one else holds a lease that still runs."""
        return self.held_until is None or self.holder == worker.name or self.held_until < at


@dataclass(frozen=True, slots=True)
class Worker:
    """One who works on projections, under leases that run out if it dies."""

    name: str
    lease: timedelta


def find(connection: Connection, name: str, *, active: bool = True) -> ProjectionState | None:
    """Return the projection of a name that is read, or the one that is being built."""
    query = select(projection).where(projection.c.name == name, projection.c.active == active)
    row = connection.execute(query).one_or_none()
    return None if row is None else ProjectionState(*row)


def begin(connection: Connection, name: str, *, active: bool = True) -> ProjectionState:
    """Begin a projection at the start of the feed, unless there is one, and return what there is then."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = insert(projection).values(name=name, active=active, position=0)
    connection.execute(row.on_conflict_do_nothing())
    query = select(projection).where(projection.c.name == name, projection.c.active == active)
    return ProjectionState(*connection.execute(query).one())


def move(
    connection: Connection, state: ProjectionState, worker: Worker, to: int, at: datetime, *, keep: bool
) -> bool:
    """Move a projection on, and keep its lease or not; False if it is not where and whose it was.

    From here on until the transaction ends, the projection is locked.
    """
    moved = connection.execute(
        update(projection)
        .where(
            projection.c.id == state.id,
            projection.c.active == state.active,
            projection.c.position == state.position,
            or_(
                projection.c.holder.is_(None),
                projection.c.holder == worker.name,
                projection.c.held_until < at,
            ),
        )
        .values(
            position=to,
            holder=worker.name if keep else None,
            held_until=at + worker.lease if keep else None,
        )
    )
    return moved.rowcount == 1


def swap(connection: Connection, state: ProjectionState, worker: Worker, reached: int) -> bool:
    """Let what a worker has built be read from now on; False if what is read is further than `reached`."""
    query = select(projection).where(projection.c.name == state.name).order_by(projection.c.id)
    rows = [ProjectionState(*row) for row in connection.execute(query.with_for_update())]
    mine = any(row.id == state.id and row.holder == worker.name for row in rows)
    if not mine or any(row.position > reached for row in rows):
        return False
    same_name = projection.c.name == state.name
    connection.execute(delete(projection).where(same_name, projection.c.id != state.id))
    values = {"active": True, "position": reached, "holder": None, "held_until": None}
    connection.execute(update(projection).where(same_name).values(values))
    return True


def abandon(connection: Connection, state: ProjectionState) -> None:
    """Forget a projection."""
    connection.execute(delete(projection).where(projection.c.id == state.id))
