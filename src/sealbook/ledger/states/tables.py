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
    UniqueConstraint,
    text,
)

from sealbook.ledger.db.tables import KEY, key_columns, metadata
from sealbook.ledger.db.types import JsonDocument, Name, RunIdText, StatusName, UtcTimestamp

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
"""What is true of a partition now; no row means pending. Version and count are those of its current run."""

JUDGED = tuple(column.name for column in partition_state.c if column.name not in KEY)
"""What a verdict may change."""

OVERRIDDEN = ("status", "current_run_id", "record_count", "updated_at", "error_message")
"""What a control action may change: it counts no attempt, and a rollback keeps the schema_version."""

validator = Table(
    "validator",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("digest", Name, nullable=False),
    Column("version", Text, nullable=False),
    Column("checks", JsonDocument, nullable=False),
    Column("contract_hash", Name),
    UniqueConstraint("digest", name="validator_digest"),
)
"""Who judged: a validator's version, its checks in their order, its contract. The digest is over all."""

attempt = Table(
    "attempt",
    metadata,
    *key_columns(),
    Column("attempt", Integer, nullable=False),
    Column("validator_id", Integer, nullable=False),
    Column("judged_at", UtcTimestamp, nullable=False),
    Column("record_count", BigInteger),
    Column("run_id", RunIdText, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("schema_version", Text),
    Column("error_message", Text),
    Column("findings", JsonDocument),
    Column("revalidation_id", Text),
    PrimaryKeyConstraint(*KEY, "attempt"),
    CheckConstraint("outcome IN ('accepted', 'rejected')", name="outcome"),
    sqlite_with_rowid=False,
)
"""Every judgement. `findings` are the checks that did not simply pass, by place among the validator's."""
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
    CheckConstraint(
        "action IN ('requeue', 'rollback', 'reprocess', 'backfill', 'pause', 'resume', 'mark', 'clear',"
        " 'cancel', 'cut')",
        name="action",
    ),
)
"""Every control action: who did what to which partitions, and why. `filter` is how they were chosen."""

rollback = Table(
    "rollback",
    metadata,
    *key_columns(),
    Column("override_id", BigInteger, nullable=False),
    Column("from_run_id", RunIdText, nullable=False),
    Column("to_run_id", RunIdText, nullable=False),
    Column("newest_run_id", RunIdText, nullable=False),
    PrimaryKeyConstraint(*KEY, "override_id"),
    sqlite_with_rowid=False,
)
"""Every rollback since they hold: from which run to which, and the newest run that the partition had then."""
