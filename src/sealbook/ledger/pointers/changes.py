"""How what is published differs from what was, at a time or at a cut: counted by the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, FromClause, and_, case, func, literal, not_, or_, select, true

from sealbook.ledger.db.queries import same
from sealbook.ledger.pointers.conditions import OPEN, READABLE
from sealbook.ledger.pointers.tables import authority_change, pointer
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import partition_state
from sealbook.model.publication import Change, Cut
from sealbook.model.selection import Selection

_then = pointer.alias("then")
_earlier = pointer.alias("earlier")
_later = pointer.alias("later")


def count_changes(connection: Connection, selection: Selection, since: datetime | Cut) -> dict[Change, int]:
    """Count the partitions that are chosen by how they changed; each kind is there, be it with 0."""
    found = {
        **_read_now(connection, selection, since),
        Change.WITHDRAWN: _withdrawn(connection, selection, since),
    }
    return {kind: found.get(kind, 0) for kind in Change}


def _read_now(connection: Connection, selection: Selection, since: datetime | Cut) -> dict[Change, int]:
    """Count what can be read now by a pointer that is younger."""
    earlier = select(_earlier.c.run_id).where(same(_earlier, pointer), not_(_is_younger(_earlier, since)))
    kind = case(
        (_then.c.run_id.is_not(None), literal(Change.REPLACED.value)),
        (earlier.exists(), literal(Change.RESTORED.value)),
        else_=literal(Change.PUBLISHED.value),
    )
    query = (
        select(kind, func.count())
        .select_from(pointer)
        .join(partition_state, same(partition_state, pointer))
        .outerjoin(_then, and_(same(_then, pointer), _held(_then, since)))
        .where(
            READABLE, _is_younger(pointer, since), *conditions(connection.dialect.name, pointer, selection)
        )
        # Withdrawn and brought back in between: it is what it was.
        .where(func.coalesce(_then.c.run_id, "") != pointer.c.run_id)
        .group_by(kind)
    )
    return {Change(name): count for name, count in connection.execute(query)}


def _withdrawn(connection: Connection, selection: Selection, since: datetime | Cut) -> int:
    """Count what could be read then, and is not now, in whichever run."""
    later = select(_later.c.run_id).where(same(_later, pointer), _later.c.valid_to.is_(None))
    # A demotion takes effect with the verdict; the pointer is ended by the next load, for which it is noted.
    noted = select(authority_change.c.id).where(same(authority_change, pointer))
    ended = and_(not_(OPEN), not_(later.exists()))
    demoted = and_(OPEN, noted.exists(), READABLE.is_not(true()), *_moved(since))
    query = (
        select(func.count())
        .select_from(pointer)
        .outerjoin(partition_state, same(partition_state, pointer))
        .where(_held(pointer, since), *conditions(connection.dialect.name, pointer, selection))
        .where(or_(ended, demoted))
    )
    count: int = connection.execute(query).scalar_one()
    return count


def _moved(since: datetime | Cut) -> list[Any]:
    """Say that a state has changed since; whoever makes a cut hides first what is not readable."""
    return [] if isinstance(since, Cut) else [partition_state.c.updated_at > since]


def _is_younger(table: FromClause, since: datetime | Cut) -> Any:
    if isinstance(since, Cut):
        return table.c.valid_from > since.version
    return table.c.published_at > since


def _held(table: FromClause, since: datetime | Cut) -> Any:
    """Say that a pointer held then."""
    if isinstance(since, Cut):
        begun, ended = table.c.valid_from <= since.version, table.c.valid_to > since.version
    else:
        begun, ended = table.c.published_at <= since, table.c.closed_at > since
    return and_(begun, or_(table.c.valid_to.is_(None), ended))
