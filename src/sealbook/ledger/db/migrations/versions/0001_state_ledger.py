"""The state ledger: states, attempts, and the log of overrides."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

KEY = ("source", "customer_id", "query_name", "logical_date")
TIME = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "partition_state",
        *_key_columns(),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("current_run_id", NAME),
        sa.Column("schema_version", sa.Text),
        sa.Column("record_count", sa.BigInteger),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("error_message", sa.Text),
        sa.Column("attempt_count", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint(*KEY, name="partition_state_pkey"),
        sa.CheckConstraint("status IN ('pending', 'success', 'failed')", name="partition_state_status"),
        sa.CheckConstraint("attempt_count >= 0", name="partition_state_attempt_count"),
        sa.CheckConstraint(
            "status <> 'success' OR (current_run_id IS NOT NULL AND schema_version IS NOT NULL"
            " AND record_count IS NOT NULL AND error_message IS NULL)",
            name="partition_state_success_names_its_run",
        ),
        sa.CheckConstraint(
            "status <> 'failed' OR error_message IS NOT NULL", name="partition_state_failed_says_why"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "attempt",
        *_key_columns(),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("schema_version", sa.Text),
        sa.Column("record_count", sa.BigInteger),
        sa.Column("error_message", sa.Text),
        sa.Column("validator_version", sa.Text, nullable=False),
        sa.Column("checks", DOCUMENT, nullable=False),
        sa.Column("revalidation_id", sa.Text),
        sa.Column("judged_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint(*KEY, "attempt", name="attempt_pkey"),
        sa.CheckConstraint("outcome IN ('accepted', 'rejected')", name="attempt_outcome"),
    )
    first, again = sa.text("revalidation_id IS NULL"), sa.text("revalidation_id IS NOT NULL")
    op.create_index(
        "attempt_once_a_run",
        "attempt",
        [*KEY, "run_id"],
        unique=True,
        sqlite_where=first,
        postgresql_where=first,
    )
    op.create_index(
        "attempt_once_a_revalidation",
        "attempt",
        [*KEY, "run_id", "revalidation_id"],
        unique=True,
        sqlite_where=again,
        postgresql_where=again,
    )
    op.create_table(
        "override_log",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity(always=True), nullable=False
        ),
        sa.Column("at", TIME, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("filter", DOCUMENT),
        sa.Column("keys", DOCUMENT, nullable=False),
        sa.Column("run_id", NAME),
        sa.PrimaryKeyConstraint("id", name="override_log_pkey"),
        sa.CheckConstraint("action IN ('requeue', 'rollback')", name="override_log_action"),
    )


def _key_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("logical_date", sa.Date, nullable=False),
    ]
