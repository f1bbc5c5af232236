"""How the ledger itself is: which database, with what rights, and what was left in it. Nothing is changed."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import TracebackType
from typing import NamedTuple, Self

from sqlalchemy import func, select, text

from sealbook.clock import utc_now
from sealbook.ledger import roles
from sealbook.ledger.db import schema
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.leases import Lease, lease
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events.horizon import run_horizon
from sealbook.ledger.events.tables import run_event
from sealbook.ledger.pointers.tables import removal
from sealbook.ledger.states.tables import partition_state
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey, Status
from sealbook.model.keys import newest_run_prefix

_NAMES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
_VERSION = {"postgresql": text("SHOW server_version"), "sqlite": text("SELECT sqlite_version()")}
_LATER_THAN_ANY = "Z" * 16
"""Behind the characters of a run's time: no run of that time is later."""


class Rights(NamedTuple):
    """Which work a user of PostgreSQL may do, and which rights roles lack for the work they are for."""

    user: str
    works: tuple[str, ...]
    lacking: dict[str, list[str]]


class AbandonedClaims(NamedTuple):
    """Work that somebody claimed, and neither finished nor let go of since its leases ran out."""

    holder: str
    partitions: int
    since: datetime


class LedgerHealth:
    """The port of whoever asks how the ledger is. It opens one of any revision, and only reads."""

    def __init__(self, url: str) -> None:
        self._database = Database(url, read_only=True)

    @property
    def dialect(self) -> str:
        """Which kind of database it is."""
        return self._database.dialect

    def server(self) -> str:
        """Return which database it is, with its version."""
        with self._database.read() as connection:
            version = connection.execute(_VERSION[self.dialect]).scalar_one()
        return f"{_NAMES[self.dialect]} {str(version).partition(' ')[0]}"

    def revision(self) -> str | None:
        """Return the revision of the tables; None where there are none."""
        with self._database.read() as connection:
            return schema.revision(connection)

    def check_revision(self) -> None:
        """Raise NotMigrated unless the tables are of the revision that this code needs."""
        schema.check_version(self._database)

    def skew(self) -> timedelta:
        """Return how far the ledger's clock is ahead of this machine's, as well as a question can tell."""
        with self._database.read() as connection:
            asked = utc_now()
            told = LedgerClock().now(connection)
            return told - (asked + (utc_now() - asked) / 2)

    def rights(self) -> Rights | None:
        """Return which work the present user may do; None on SQLite, which has no users."""
        if self.dialect != "postgresql":
            return None
        with self._database.read() as connection:
            user = connection.execute(text("SELECT current_user")).scalar_one()
            may_not = roles.lacking(connection, user)
            lacking = {
                role: missing
                for role, name in roles.granted_roles(connection).items()
                if (missing := roles.lacking(connection, role)[name])
            }
        return Rights(user, tuple(name for name, missing in may_not.items() if not missing), lacking)

    def now(self) -> datetime:
        """Return the time by the ledger's clock."""
        with self._database.read() as connection:
            return LedgerClock().now(connection)

    def authorities_ahead(self) -> list[PartitionKey]:
        """Return the partitions whose authority is a run from the future (R-RUN-2), in order."""
        with self._database.read() as connection:
            horizon = run_horizon(connection, LedgerClock().now(connection))
        newest = newest_run_prefix(horizon) + _LATER_THAN_ANY
        query = (
            select(*(partition_state.c[name] for name in KEY))
            .where(partition_state.c.status == Status.SUCCESS.value)
            .where(partition_state.c.current_run_id > newest)
            .order_by(*(partition_state.c[name] for name in KEY))
        )
        with self._database.read() as connection:
            return [PartitionKey(*row) for row in connection.execute(query)]

    def abandoned_leases(self, age: timedelta) -> list[Lease]:
        """Return the leases that ran out so long ago, and that their holders never let go of."""
        query = select(lease).where(lease.c.holder.is_not(None), lease.c.expires_at < self.now() - age)
        with self._database.read() as connection:
            return [Lease(*row) for row in connection.execute(query.order_by(lease.c.expires_at))]

    def abandoned_claims(self, age: timedelta) -> list[AbandonedClaims]:
        """Return by their holders the claims to work that ran out so long ago, the longest first."""
        since = func.min(work.c.expires_at, type_=work.c.expires_at.type)
        query = (
            select(work.c.holder, func.count(), since)
            .where(work.c.holder.is_not(None), work.c.expires_at < self.now() - age)
            .group_by(work.c.holder)
            .order_by(since)
        )
        with self._database.read() as connection:
            return [AbandonedClaims(*row) for row in connection.execute(query)]

    def ahead(self) -> timedelta:
        """Return how far the last event that was written is ahead of the ledger's clock; 0 if it is not."""
        query = select(run_event.c.persisted_at).order_by(run_event.c.position.desc()).limit(1)
        with self._database.read() as connection:
            last: datetime | None = connection.execute(query).scalar()
            now = LedgerClock().now(connection)
        return max(last - now, timedelta(0)) if last is not None else timedelta(0)

    def abandoned_removals(self, age: timedelta) -> int:
        """Count the artifacts that a clean-up condemned so long ago, and has not said to be gone."""
        query = select(func.count()).where(
            removal.c.removed_at.is_(None), removal.c.condemned_at < self.now() - age
        )
        with self._database.read() as connection:
            found: int = connection.execute(query).scalar_one()
        return found

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
