"""Shares of a limit of requests per second: all workers together never get more than the limit.

Each worker renews its share before it runs out, and keeps its own quick limiter at it. A newcomer gets what
the others leave, at most an equal part; they come down to theirs when they renew.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, delete, func, select, text, update

from sealbook.errors import InvalidInput
from sealbook.ledger.db.bulk import upsert_rows
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.schedule.tables import rate_share
from sealbook.model.verdict import check_text

SHARE = timedelta(seconds=30)
"""How long a share holds unless it is renewed."""


class RateShares:
    """The port of workers that ask a source."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def renew(self, source: str, holder: str, limit: float, duration: timedelta = SHARE) -> float:
        """Return how many requests per second a worker may send until its share runs out; 0 is none yet."""
        check_text("holder", holder)
        if not limit > 0:
            raise InvalidInput.of("limit", limit, "a number above 0")

        def share(connection: Connection) -> float:
            if connection.dialect.name == "postgresql":  # one after the other, also the first two ever
                connection.execute(_IN_TURN, {"source": source})
            at = self._clock.now(connection)
            connection.execute(
                delete(rate_share).where(rate_share.c.source == source, rate_share.c.expires_at <= at)
            )
            others = select(func.count(), func.coalesce(func.sum(rate_share.c.per_second), 0.0)).where(
                rate_share.c.source == source, rate_share.c.holder != holder
            )
            number, taken = connection.execute(others).one()
            mine: float = max(0.0, min(limit / (number + 1), limit - taken))
            upsert_rows(
                connection,
                rate_share,
                [(source, holder, mine, at + duration)],
                ("per_second", "expires_at"),
            )
            return mine

        return self._database.write(share, repeatable=True)

    def keep(self, source: str, holder: str, duration: timedelta = SHARE) -> bool:
        """Keep a share as it is for longer, while requests are sent at it; False if it has run out."""

        def prolong(connection: Connection) -> bool:
            at = self._clock.now(connection)
            mine = update(rate_share).where(
                rate_share.c.source == source, rate_share.c.holder == holder, rate_share.c.expires_at > at
            )
            kept = mine.values(expires_at=at + duration).returning(rate_share.c.holder)
            return connection.execute(kept).first() is not None

        return self._database.write(prolong, repeatable=True)

    def release(self, source: str, holder: str) -> None:
        """Leave a share to the others."""
        mine = delete(rate_share).where(rate_share.c.source == source, rate_share.c.holder == holder)
        self._database.write(lambda connection: connection.execute(mine), repeatable=True)


_IN_TURN = text("SELECT pg_advisory_xact_lock('rate_share'::regclass::oid::integer, hashtext(:source))")
