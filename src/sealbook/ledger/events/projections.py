"""How far each projection is: its position in the feed.

What keeps a projection right is the position: it moves only from where the mover saw it, in the transaction
that writes what was projected (R-EVT-8). A lease spares others the work, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.events.tables import projection


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """A row of `projection`: the one that is read, or one that is being built anew."""

    id: int
    name: str
    active: bool
    position: int

    @property
    def lease(self) -> str:
        """The name of the lease under which it is worked on."""
        return f"projection/{self.name}" if self.active else rebuild_lease(self.name)


def rebuild_lease(name: str) -> str:
    """Return the name of the lease under which a projection is built anew."""
    return f"projection/{name}/rebuild"


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


def move(connection: Connection, state: ProjectionState, to: int) -> bool:
    """Move a projection on; False if it is not where it was seen.

    From here on until the transaction ends, the projection is locked.
    """
    moved = connection.execute(
        update(projection)
        .where(
            projection.c.id == state.id,
            projection.c.active == state.active,
            projection.c.position == state.position,
        )
        .values(position=to)
    )
    return moved.rowcount == 1


def swap(connection: Connection, state: ProjectionState, reached: int) -> bool:
    """Let what was built be read from now on; False if it is gone, or what is read is beyond `reached`."""
    query = select(projection).where(projection.c.name == state.name).order_by(projection.c.id)
    rows = [ProjectionState(*row) for row in connection.execute(query.with_for_update())]
    if state.id not in {row.id for row in rows} or any(row.position > reached for row in rows):
        return False
    same_name = projection.c.name == state.name
    connection.execute(delete(projection).where(same_name, projection.c.id != state.id))
    connection.execute(update(projection).where(same_name).values(active=True, position=reached))
    return True


def abandon(connection: Connection, state: ProjectionState) -> None:
    """Forget a projection."""
    connection.execute(delete(projection).where(projection.c.id == state.id))
