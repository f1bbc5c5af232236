"""The durable book: which partition is safe to consume, and how it came to be so."""

from __future__ import annotations

from contextlib import closing
from types import TracebackType
from typing import Self

from sealbook.clock import Clock, utc_now
from sealbook.errors import SealbookError
from sealbook.ledger.db import roles, schema
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events import SqlRunStore
from sealbook.ledger.pointer_events import to_event_log
from sealbook.ledger.pointers import Pointers
from sealbook.ledger.states.overrides import ControlWrites
from sealbook.ledger.states.reader import LedgerReads
from sealbook.ledger.states.verdicts import VerdictWrites

__all__ = ["ControlWrites", "Ledger", "LedgerReads", "VerdictWrites", "grant_roles", "migrate", "open_ledger"]


class Ledger(LedgerReads, VerdictWrites, ControlWrites):
    """All ports on one database; hand a worker only the port of its role."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        LedgerReads.__init__(self, database)
        VerdictWrites.__init__(self, database, clock)
        ControlWrites.__init__(self, database, clock)
        self.run_store = SqlRunStore(database, clock)
        self.pointers = Pointers(database, clock, to_event_log(clock))

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_ledger(url: str, *, migrate: bool = False, clock: Clock = utc_now) -> Ledger:
    """Open `sqlite:///book.db` or `postgresql://…`.

    SQLite is migrated by itself. PostgreSQL is migrated when asked to be, and else refused if it is behind.
    """
    database = Database(url)
    try:
        if migrate or database.dialect == "sqlite":
            schema.bring_to_head(database)
        else:
            schema.check_version(database)
    except SealbookError:
        database.close()
        raise
    return Ledger(database, clock)


def migrate(url: str) -> tuple[str | None, str]:
    """Bring a ledger's tables to the version this code needs; return the revision before and after."""
    with closing(Database(url)) as database:
        return schema.bring_to_head(database)


def grant_roles(url: str, prefix: str = "sealbook_") -> list[str]:
    """Create the group roles on PostgreSQL with the rights each needs, and return their names."""
    with closing(Database(url)) as database:
        return roles.grant_roles(database, prefix)
