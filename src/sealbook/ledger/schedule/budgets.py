"""What a source may be asked in any 24 hours, however many workers ask (R-CTL-10).

Requests are reserved by the claim of what needs them. A reservation counts until it is settled, and what was
spent from then on for 24 hours: a request is sent in between, so no 24 hours have more than the budget. What
was reserved by somebody who died counts as spent when its lease runs out.

How much of a budget each lane has is said by `sealbook.model.budget`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select, union_all, update
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.db.types import microseconds
from sealbook.ledger.schedule.tables import reservation, spending
from sealbook.model.budget import BUCKET as BUCKET_SECONDS
from sealbook.model.budget import WINDOW as WINDOW_SECONDS
from sealbook.model.budget import Budget
from sealbook.model.claims import Reservation
from sealbook.model.work import Lane

Scope = tuple[str, Lane]
"""A source, and one of its lanes."""

WINDOW = timedelta(seconds=WINDOW_SECONDS)
BUCKET = timedelta(seconds=BUCKET_SECONDS)
_KEPT = timedelta(days=31)
"""How long what was spent is kept, so that no clock which jumps ahead by days makes it forgotten."""


def used(connection: Connection, at: datetime) -> dict[Scope, int]:
    """Return the requests that count, by source and lane: reserved, or spent in the last 24 hours."""
    spent = select(spending.c.source, spending.c.lane, spending.c.requests).where(
        spending.c.began_at > at - WINDOW - BUCKET
    )
    reserved = select(reservation.c.source, reservation.c.lane, reservation.c.requests)
    both = union_all(spent, reserved).subquery("both")
    query = select(both.c.source, both.c.lane, func.sum(both.c.requests)).group_by(both.c.source, both.c.lane)
    return {(source, Lane(lane)): int(requests) for source, lane, requests in connection.execute(query)}


def read_budgets(
    connection: Connection,
    limits: Mapping[str, int],
    shares: Mapping[Lane, int],
    expected: Mapping[Scope, int],
    at: datetime,
) -> dict[str, Budget]:
    """Return the budgets of sources as they stand.

    `expected` is what lanes will still ask for within a day, where that is known: the rest of their shares is
    lent to the others.
    """
    counted = used(connection, at) if limits else {}
    budgets: dict[str, Budget] = {}
    for source, limit in limits.items():
        budget = budgets[source] = Budget(limit, shares)
        for lane in Lane:
            budget.reserve(lane, counted.get((source, lane), 0))
            budget.expect(lane, expected.get((source, lane), limit))
    return budgets


def next_room(connection: Connection, sources: Iterable[str], at: datetime) -> datetime | None:
    """Return when the oldest of what was spent at some sources stops counting."""
    first = select(func.min(spending.c.began_at)).where(
        spending.c.source.in_(list(sources)), spending.c.began_at > at - WINDOW - BUCKET
    )
    oldest: datetime | None = connection.execute(first).scalar()
    return None if oldest is None else oldest + WINDOW + BUCKET


def reserve(
    connection: Connection, requests: Mapping[Scope, int], holder: str, until: datetime
) -> tuple[Reservation, ...]:
    """Count requests before they are made, and return what is to be settled afterwards."""
    return tuple(
        Reservation(
            connection.execute(
                _RESERVE,
                {"source": source, "lane": lane.value, "requests": n, "holder": holder, "expires_at": until},
            ).scalar_one(),
            source,
            lane,
            n,
        )
        for (source, lane), n in requests.items()
        if n
    )


def renew(connection: Connection, holder: str, at: datetime, until: datetime) -> None:
    """Keep those of a holder's reservations for longer that have not run out."""
    kept = update(reservation).where(reservation.c.holder == holder, reservation.c.expires_at >= at)
    connection.execute(kept.values(expires_at=until))


def settle(connection: Connection, made: Mapping[int, int], at: datetime) -> None:
    """Put what was really asked in the place of what was reserved; what is settled already stays so."""
    if not made:
        return
    gone = delete(reservation).where(reservation.c.id.in_(made)).returning(reservation)
    rows = connection.execute(gone).all()
    _spend(connection, [(row.source, row.lane, made[row.id], at) for row in rows])
    _forget(connection, {row.source for row in rows}, at)


def settle_lapsed(connection: Connection, at: datetime) -> None:
    """Count as spent what was reserved by those who let it run out."""
    gone = delete(reservation).where(reservation.c.expires_at < at).returning(reservation)
    rows = connection.execute(gone).all()
    if rows:
        _spend(connection, [(row.source, row.lane, row.requests, row.expires_at) for row in rows])


def _forget(connection: Connection, sources: Collection[str], at: datetime) -> None:
    """Forget what sources were asked so long ago that it will not count again."""
    if sources:
        old = (spending.c.source.in_(sources), spending.c.began_at < at - _KEPT)
        connection.execute(delete(spending).where(*old))


_RESERVE = insert(reservation).returning(reservation.c.id)


def _spend(connection: Connection, spent: Iterable[tuple[str, str, int, datetime]]) -> None:
    # No clock that was set back makes it older than what was spent before: it would stop counting too early.
    latest = connection.execute(select(func.max(spending.c.began_at))).scalar()
    counts: dict[tuple[str, datetime, str], int] = defaultdict(int)
    for source, lane, requests, at in spent:
        began_at = _bucket_of(at) if latest is None else max(_bucket_of(at), latest)
        counts[source, began_at, lane] += requests
    rows = [(*scope, requests) for scope, requests in sorted(counts.items()) if requests]
    if not rows:
        return
    kind = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = kind.insert(spending).values(rows)
    added = {"requests": spending.c.requests + new.excluded.requests}
    connection.execute(new.on_conflict_do_update(index_elements=spending.primary_key, set_=added))


def _bucket_of(at: datetime) -> datetime:
    """Return when the five minutes began that a moment is in."""
    return at - timedelta(microseconds=microseconds(at) % (BUCKET // timedelta(microseconds=1)))
