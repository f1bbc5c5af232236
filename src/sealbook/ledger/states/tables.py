"""States, attempts and the log of overrides: the only place that names their columns."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from sealbook.ledger.db.tables import KEY, key_columns, metadata
from sealbook.ledger.db.types import JsonDocument, RunIdText, StatusName, UtcTimestamp

partition_state = Table(
    "partition_state",
    metadata,
    *key_columns(),
    Column("status", StatusName, nullable=False),
    Column("current_run_id", RunIdText),
    Column("schema_version", Text),
    Column("record_count", BigInteger),
    Column("updated_at", UtcTimestamp, nullable=False),
    Column("error_message", Text),
    Column("attempt_count", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint(*KEY),
    CheckConstraint("status IN ('pending', 'success', 'failed')", name="status"),
    CheckConstraint("attempt_count >= 0", name="attempt_count"),
    CheckConstraint(
        "status <> 'success' OR (current_run_id IS NOT NULL AND schema_version IS NOT NULL"
        " AND record_count IS NOT NULL AND error_message IS NULL)",
        name="success_names_its_run",
    ),
    CheckConstraint("status <> 'failed' OR error_message IS NOT NULL", name="failed_says_why"),
    sqlite_with_rowid=False,
)

JUDGED = tuple(column.name for column in partition_state.c if column.name not in KEY)
"""What a verdict may change."""

OVERRIDDEN = ("status", "current_run_id", "record_count", "updated_at", "error_message")
"""What a control action may change: it counts no attempt, and a rollback keeps the schema_version."""

attempt = Table(
    "attempt",
    metadata,
    *key_columns(),
    Column("attempt", Integer, nullable=False),
    Column("run_id", RunIdText, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("schema_version", Text),
    Column("record_count", BigInteger),
    Column("error_message", Text),
    Column("validator_version", Text, nullable=False),
    Column("checks", JsonDocument, nullable=False),
    Column("revalidation_id", Text),
    Column("judged_at", UtcTimestamp, nullable=False),
    PrimaryKeyConstraint(*KEY, "attempt"),
    CheckConstraint("outcome IN ('accepted', 'rejected')", name="outcome"),
)
# An attempt is one judgement of one run (R-STATE-5): the database counts none twice.
Index(
    "attempt_once_a_run",
    *(attempt.c[name] for name in (*KEY, "run_id")),
    unique=True,
    sqlite_where=attempt.c.revalidation_id.is_(None),
    postgresql_where=attempt.c.revalidation_id.is_(None),
)
Index(
    "attempt_once_a_revalidation",
    *(attempt.c[name] for name in (*KEY, "run_id", "revalidation_id")),
    unique=True,
    sqlite_where=attempt.c.revalidation_id.is_not(None),
    postgresql_where=attempt.c.revalidation_id.is_not(None),
)

override_log = Table(
    "override_log",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(always=True), primary_key=True),
    Column("at", UtcTimestamp, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("filter", JsonDocument),
    Column("keys", JsonDocument, nullable=False),
    Column("run_id", RunIdText),
    CheckConstraint("action IN ('requeue', 'rollback')", name="action"),
)
