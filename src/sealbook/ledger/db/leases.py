"""Leases: who works on what, for a while, under a fence that only rises.

A lease is known by a name. Whoever claims it gets its fence, a number that each new claim raises, and does
its writes in transactions that ask `holds` first: one that lost its lease without noticing writes nothing. A
lease that ran out is free for others; until one of them claims it, its holder may still renew it.

All functions work in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Integer,
    PrimaryKeyConstraint,
    Select,
    Table,
    Text,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert, ReturningUpdate, Update

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.tables import metadata
from sealbook.ledger.db.types import Name, UtcTimestamp

lease = Table(
    "lease",
    metadata,
    Column("name", Name, nullable=False),
    Column("holder", Text),
    Column("fence", BigInteger, nullable=False),
    Column("expires_at", UtcTimestamp),
    PrimaryKeyConstraint("name"),
    CheckConstraint("(holder IS NULL) = (expires_at IS NULL)", name="held"),
)
"""One row for each name that was ever claimed: it outlives its holders, so that its fence only rises."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as it is now; nobody holds it where `holder` is None."""

    name: str
    holder: str | None
    fence: int
    expires_at: datetime | None

    def is_free_for(self, holder: str, at: datetime) -> bool:
        """Tell whether no one else holds it at that time."""
        return self.expires_at is None or self.holder == holder or self.expires_at < at


def find(connection: Connection, name: str) -> Lease:
    """Return a lease without locking it: what it says may be over a moment later."""
    row = connection.execute(_FIND, {"name": name}).one_or_none()
    return Lease(name, None, 0, None) if row is None else Lease(*row)


def claim(
    connection: Connection, names: Iterable[str], holder: str, at: datetime, duration: timedelta
) -> dict[str, int]:
    """Claim the leases that are free, have run out, or are the holder's already; return the fence of each.

    What the holder has, and has not run out, is renewed under the same fence. It waits for nobody: on
    PostgreSQL, leases that other transactions are just creating or looking at are left out.
    """
    given = encode_rows({"name": name} for name in names)
    connection.execute(_creating(connection.dialect.name), given)
    values = {**given, "holder": holder, "at": at, "until": at + duration}
    claimed = connection.execute(_claiming(connection.dialect.name), values)
    return {row.name: row.fence for row in claimed}


def heartbeat(
    connection: Connection, fences: Mapping[str, int], at: datetime, duration: timedelta
) -> set[str]:
    """Renew leases, and return the names of those that are still held under these fences."""
    values = {**_encode_fences(fences), "until": at + duration}
    return set(connection.execute(_renewing(connection.dialect.name), values).scalars())


def holds(connection: Connection, name: str, fence: int) -> bool:
    """Tell whether a lease is still held under this fence; until the transaction ends, none can claim it."""
    return connection.execute(_HOLDS, {"name": name, "fence": fence}).one_or_none() is not None


def release(connection: Connection, fences: Mapping[str, int]) -> None:
    """Let go of leases; those that are not held under these fences any more stay as they are."""
    connection.execute(_releasing(connection.dialect.name), _encode_fences(fences))


_FIND = select(lease).where(lease.c.name == bindparam("name"))
_HOLDS = (
    select(lease.c.name)
    .where(
        lease.c.name == bindparam("name"),
        lease.c.fence == bindparam("fence"),
        lease.c.holder.is_not(None),
    )
    .with_for_update()
)

_BUCKETS = 64
"""New names share this many advisory locks: PostgreSQL has no room for one each, should thousands come."""


def _encode_fences(fences: Mapping[str, int]) -> dict[str, str]:
    return encode_rows({"name": name, "fence": fence} for name, fence in fences.items())


@cache
def _creating(dialect: str) -> Insert:
    """Create the leases that are not there yet, held by nobody.

    On PostgreSQL an insert waits for whoever is just inserting the same name. An advisory lock is tried
    first: who does not get it leaves the name to the other.
    """
    given = given_rows(dialect, [lease.c.name])
    there = select(lease.c.name).where(lease.c.name == given.c.name).exists()
    new = select(given.c.name, literal(0)).where(~there)
    if dialect == "postgresql":
        bucket = func.hashtext(given.c.name).op("&")(literal_column(str(_BUCKETS - 1)))
        new = new.where(func.pg_try_advisory_xact_lock(_OF_LEASES, bucket)).order_by(given.c.name)
        return postgresql.insert(lease).from_select(["name", "fence"], new).on_conflict_do_nothing()
    return sqlite.insert(lease).from_select(["name", "fence"], new).on_conflict_do_nothing()


_OF_LEASES = literal_column("'lease'::regclass::oid::integer", Integer)


@cache
def _claiming(dialect: str) -> ReturningUpdate[Any]:
    given = given_rows(dialect, [lease.c.name])
    holder, at, until = (
        bindparam("holder", type_=Text),
        bindparam("at", type_=UtcTimestamp),
        bindparam("until", type_=UtcTimestamp),
    )
    free = (
        select(lease.c.name)
        .join(given, lease.c.name == given.c.name)
        .where(or_(lease.c.holder.is_(None), lease.c.holder == holder, lease.c.expires_at < at))
        .order_by(lease.c.name)
        .with_for_update(of=lease, skip_locked=True)
        .cte("free")
    )
    renewed = (lease.c.holder == holder) & (lease.c.expires_at >= at)
    fence = lease.c.fence + case((renewed, 0), else_=1)
    return (
        update(lease)
        .where(lease.c.name.in_(select(free.c.name)))
        .values(holder=holder, fence=fence, expires_at=until)
        .returning(lease.c.name, lease.c.fence)
    )


@cache
def _renewing(dialect: str) -> ReturningUpdate[Any]:
    return (
        update(lease)
        .where(lease.c.name.in_(_held(dialect)))
        .values(expires_at=bindparam("until", type_=UtcTimestamp))
        .returning(lease.c.name)
    )


@cache
def _releasing(dialect: str) -> Update:
    return update(lease).where(lease.c.name.in_(_held(dialect))).values(holder=None, expires_at=None)


def _held(dialect: str) -> Select[tuple[str]]:
    """Pick the leases that are held under the fences given, locked in the order of their names."""
    given = given_rows(dialect, [lease.c.name, lease.c.fence])
    held = (
        select(lease.c.name)
        .join(given, (lease.c.name == given.c.name) & (lease.c.fence == given.c.fence))
        .where(lease.c.holder.is_not(None))
        .order_by(lease.c.name)
        .with_for_update(of=lease)
        .cte("held")
    )
    return select(held.c.name)
