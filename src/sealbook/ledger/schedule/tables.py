"""Budgets, shares of rates, and plans: the only place that names their columns."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from sealbook.ledger.db.tables import metadata
from sealbook.ledger.db.types import JsonDocument, Name, UtcTimestamp

_ID = BigInteger().with_variant(Integer, "sqlite")

spending = Table(
    "spending",
    metadata,
    Column("source", Name, nullable=False),
    Column("began_at", UtcTimestamp, nullable=False),
    Column("lane", Name, nullable=False),
    Column("requests", BigInteger, nullable=False),
    PrimaryKeyConstraint("source", "began_at", "lane"),
)
"""The requests that were made, by five minutes and lane; they count for 24 hours, and go after a month."""

reservation = Table(
    "reservation",
    metadata,
    Column("id", _ID, Identity(always=True), primary_key=True),
    Column("source", Name, nullable=False),
    Column("lane", Name, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("expires_at", UtcTimestamp, nullable=False),
    sqlite_autoincrement=True,
)
"""Requests that a claim has reserved: a row goes when it is settled, or has run out and counts as spent.

No id is used twice: who settles late must not settle what is another's.
"""

rate_share = Table(
    "rate_share",
    metadata,
    Column("source", Name, nullable=False),
    Column("holder", Text, nullable=False),
    Column("per_second", Double, nullable=False),
    Column("expires_at", UtcTimestamp, nullable=False),
    PrimaryKeyConstraint("source", "holder"),
)
"""Which part of a source's limit of requests each worker may use for now; they never add up to more."""

plan = Table(
    "plan",
    metadata,
    Column("id", _ID, Identity(always=True), primary_key=True),
    Column("kind", Name, nullable=False),
    Column("name", Name),
    Column("state", Name, nullable=False),
    Column("request", JsonDocument, nullable=False),
    Column("packed", LargeBinary, nullable=False),
    Column("digest", Name, nullable=False),
    Column("partitions", Integer, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("previewed_at", UtcTimestamp, nullable=False),
    Column("carried_out_at", UtcTimestamp),
    Column("ended_at", UtcTimestamp),
    CheckConstraint("state IN ('previewed', 'open', 'paused', 'cancelled', 'done')", name="state"),
    sqlite_autoincrement=True,
)
"""What an operator's action would do or did; `packed` are its partitions, each as it was found."""
Index(
    "plan_name",
    plan.c.name,
    unique=True,
    sqlite_where=text("state IN ('open', 'paused')"),
    postgresql_where=text("state IN ('open', 'paused')"),
)
