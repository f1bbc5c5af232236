"""Accounts as they were seen, a row for each time that one was another; and refreshes of each source."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from sealbook.ledger.db.tables import metadata
from sealbook.ledger.db.types import JsonDocument, Name, UtcTimestamp

_Number = BigInteger().with_variant(Integer, "sqlite")

account_sighting = Table(
    "account_sighting",
    metadata,
    Column("id", _Number, Identity(always=True), primary_key=True),
    Column("tenant_id", Name, nullable=False),
    Column("workspace_id", Name, nullable=False),
    Column("source", Name, nullable=False),
    Column("customer_id", Name, nullable=False),
    Column("at", UtcTimestamp, nullable=False),
    Column("presence", Text, nullable=False),
    Column("name", Text),
    Column("status", Text, nullable=False),
    Column("is_open", Boolean, nullable=False),
    Column("is_manager", Boolean, nullable=False),
    Column("is_hidden", Boolean, nullable=False),
    Column("level", Integer, nullable=False),
    Column("time_zone", Text),
    Column("currency", Text),
    Column("labels", JsonDocument, nullable=False),
    Column("actor", Text),
    Column("reason", Text),
    CheckConstraint("presence IN ('seen', 'vanished', 'forgotten')", name="presence"),
)
"""Each account from a moment on, up to its next row: the last one is how it was seen last."""
Index(
    "account_sighting_of_source",
    *(account_sighting.c[name] for name in ("tenant_id", "workspace_id", "source", "id")),
)

account_refresh = Table(
    "account_refresh",
    metadata,
    Column("tenant_id", Name, nullable=False),
    Column("workspace_id", Name, nullable=False),
    Column("source", Name, nullable=False),
    Column("root", Name),
    Column("refreshed_at", UtcTimestamp),
    Column("failed_at", UtcTimestamp),
    Column("failures", Integer, nullable=False),
    Column("error", Text),
    PrimaryKeyConstraint("tenant_id", "workspace_id", "source"),
)
"""When each source was last asked for its accounts and answered, and since then in vain how often."""
