"""The feed: the events of all runs in the order of their commits (R-EVT-8)."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, func, select, text

from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.port import Backlog, FeedEvent
from sealbook.ledger.events.rows import SELECT_EVENTS, event_from_row
from sealbook.ledger.events.tables import run_event

_PAGE = (
    SELECT_EVENTS.where(
        run_event.c.position > bindparam("after"), run_event.c.position <= bindparam("horizon")
    )
    .order_by(run_event.c.position)
    .limit(bindparam("limit"))
)
_WAITING = select(func.count(), func.min(run_event.c.position), func.max(run_event.c.position)).where(
    run_event.c.position > bindparam("after")
)
_PERSISTED_AT = select(run_event.c.persisted_at).where(run_event.c.position == bindparam("position"))
_PARTITIONS = (
    select(run_event.c.partition)
    .where(run_event.c.position > bindparam("after"), run_event.c.partition.is_not(None))
    .distinct()
    .limit(bindparam("limit"))
)
_NO_HORIZON = 2**63 - 1


def fetch_feed(database: Database, after: int, limit: int) -> list[FeedEvent]:
    """Return the events after a position, as far as nothing can come between them any more."""
    with database.read() as connection:
        horizon = feed_horizon(connection)
        # A statement of its own: it must see what was committed before the horizon was known.
        rows = connection.execute(_PAGE, {"after": after, "horizon": horizon, "limit": limit}).all()
    return [FeedEvent(row[0], event_from_row(row)) for row in rows]


def partitions_after(database: Database, after: int, limit: int) -> list[str]:
    """Return the keys of partitions that events after a position tell of, each once."""
    with database.read() as connection:
        given = {"after": after, "limit": limit}
        return list(connection.execute(_PARTITIONS, given).scalars())


def measure_backlog(database: Database, after: int) -> Backlog:
    """Measure what comes after a position, be it beyond the horizon."""
    with database.read() as connection:
        events, first, last = connection.execute(_WAITING, {"after": after}).one()
        if not events:
            return Backlog(0, None, after)
        return Backlog(events, connection.execute(_PERSISTED_AT, {"position": first}).scalar(), last)


def feed_horizon(connection: Connection) -> int:
    """Return the position up to which nothing can come between what is there any more."""
    if connection.dialect.name != "postgresql":
        return _NO_HORIZON  # one writer at a time: positions are given out in the order of commits
    horizon: int = connection.execute(text("SELECT horizon FROM run_feed_horizon()")).scalar_one()
    return horizon
