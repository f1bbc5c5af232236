"""Contracts by hash, and since when each is in force: the only place that names their columns."""

from __future__ import annotations

from sqlalchemy import Column, PrimaryKeyConstraint, Table, Text

from sealbook.ledger.db.tables import metadata
from sealbook.ledger.db.types import Name, UtcTimestamp

contract = Table(
    "contract",
    metadata,
    Column("hash", Name, nullable=False),
    Column("source", Name, nullable=False),
    Column("query_name", Name, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("hash"),
)
"""Every contract that was ever in force, as JSON."""

contract_in_force = Table(
    "contract_in_force",
    metadata,
    Column("source", Name, nullable=False),
    Column("query_name", Name, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("since", UtcTimestamp, nullable=False),
    Column("hash", Name, nullable=False),
    PrimaryKeyConstraint("source", "query_name", "schema_version", "since"),
)
"""Which contract of a schema version holds since when; the latest of these is in force."""
