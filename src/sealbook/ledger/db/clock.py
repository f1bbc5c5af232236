"""The one clock of a ledger, whichever machines write to it (R-STATE-11)."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, func, select

from sealbook.clock import Clock, utc_now
from sealbook.model.wire import as_utc

_DATABASE_TIME = select(func.clock_timestamp())  # of the moment, not of the transaction's beginning


class LedgerClock:
    """The time by which a ledger goes: that of the database on PostgreSQL, whatever its writers' clocks say.

    A SQLite file is of one machine, whose clock it goes by. `given` takes the place of both.
    """

    def __init__(self, given: Clock | None = None) -> None:
        self._given = given

    def now(self, connection: Connection, *, not_before: datetime | None = None) -> datetime:
        """Return the time; ask once the locks are held.

        `not_before` is the latest time that is known of what is written: a clock that was set back does not
        take it back.
        """
        if self._given is None and connection.dialect.name == "postgresql":
            at: datetime = connection.execute(_DATABASE_TIME).scalar_one().astimezone(UTC)
        else:
            at = as_utc("time", (self._given or utc_now)())
        return at if not_before is None else max(at, not_before)
