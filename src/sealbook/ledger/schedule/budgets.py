"""What a source may be asked in a day: reserved by claims, and set right when they are settled (R-CTL-10).

A day is any 24 hours. Requests are counted by five minutes, and a count goes when all of it is a day old: so
the sum is never too low. What was reserved by somebody who died stays counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.db.types import microseconds
from sealbook.ledger.schedule.tables import budget, reservation
from sealbook.ledger.schedule.turns import Rooms
from sealbook.model.claims import Reservation
from sealbook.model.work import Lane

DAY = timedelta(hours=24)
BUCKET = timedelta(minutes=5)

Scope = tuple[str, str]
"""A source, and one of its lanes."""


def bucket_of(at: datetime) -> datetime:
    """Return when the five minutes began that a moment is in."""
    return at - timedelta(microseconds=microseconds(at) % (BUCKET // timedelta(microseconds=1)))


def used(connection: Connection, at: datetime) -> dict[Scope, int]:
    """Return the requests of the last 24 hours, by source and lane."""
    query = (
        select(budget.c.source, budget.c.lane, func.sum(budget.c.requests))
        .where(budget.c.began_at > at - DAY - BUCKET)
        .group_by(budget.c.source, budget.c.lane)
    )
    return {(source, lane): int(requests) for source, lane, requests in connection.execute(query)}


def rooms(
    connection: Connection, budgets: Mapping[str, int], shares: Mapping[Lane, int], at: datetime
) -> Rooms:
    """Return what is left of budgets: each lane has its share of one, and all together no more than it."""
    spent = used(connection, at) if budgets else {}
    total = sum(shares.values())
    return Rooms(
        {
            (source, lane.value): limit * share // total - spent.get((source, lane.value), 0)
            for source, limit in budgets.items()
            for lane, share in shares.items()
        },
        {
            source: limit - sum(requests for (of, _), requests in spent.items() if of == source)
            for source, limit in budgets.items()
        },
    )


def next_room(connection: Connection, budgets: Iterable[str], at: datetime) -> datetime | None:
    """Return when the oldest requests of some sources stop counting."""
    first = select(func.min(budget.c.began_at)).where(
        budget.c.source.in_(list(budgets)), budget.c.began_at > at - DAY - BUCKET
    )
    oldest: datetime | None = connection.execute(first).scalar()
    return None if oldest is None else oldest + DAY + BUCKET


def reserve(
    connection: Connection, requests: Mapping[Scope, int], holder: str, at: datetime
) -> tuple[Reservation, ...]:
    """Count requests before they are made, and return what is to be settled afterwards."""
    began_at = bucket_of(at)
    reserved = {scope: number for scope, number in sorted(requests.items()) if number}
    if not reserved:
        return ()
    _count(connection, {(source, began_at, lane): number for (source, lane), number in reserved.items()})
    made = insert(reservation).returning(reservation.c.id)
    return tuple(
        Reservation(
            connection.execute(
                made, {"source": source, "lane": lane, "began_at": began_at, "requests": n, "holder": holder}
            ).scalar_one(),
            source,
            Lane(lane),
            n,
        )
        for (source, lane), n in reserved.items()
    )


def settle(connection: Connection, made: Mapping[int, int]) -> None:
    """Put what was really asked in the place of what was reserved; what is settled already stays so."""
    if not made:
        return
    gone = delete(reservation).where(reservation.c.id.in_(made)).returning(reservation)
    changes: dict[tuple[str, datetime, str], int] = defaultdict(int)
    for row in connection.execute(gone):
        changes[row.source, row.began_at, row.lane] += made[row.id] - row.requests
    _count(connection, {scope: change for scope, change in changes.items() if change})


def forget(connection: Connection, at: datetime) -> None:
    """Remove counts and reservations that no budget looks at any more."""
    for table in (budget, reservation):
        connection.execute(delete(table).where(table.c.began_at < at - 2 * DAY))


def _count(connection: Connection, changes: Mapping[tuple[str, datetime, str], int]) -> None:
    if not changes:
        return
    kind = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = kind.insert(budget).values(
        [
            {"source": source, "began_at": began_at, "lane": lane, "requests": change}
            for (source, began_at, lane), change in sorted(changes.items())
        ]
    )
    added = {"requests": budget.c.requests + new.excluded.requests}
    connection.execute(new.on_conflict_do_update(index_elements=budget.primary_key, set_=added))
