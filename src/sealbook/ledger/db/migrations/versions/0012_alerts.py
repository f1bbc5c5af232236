"""Alerts and their outbox."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "alert",
        sa.Column("id", NAME, nullable=False),
        sa.Column("tenant_id", NAME, nullable=False),
        sa.Column("workspace_id", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("subject", NAME, nullable=False),
        sa.Column("since", TIME),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("raised_at", TIME, nullable=False),
        sa.Column("resolved_at", TIME),
        sa.PrimaryKeyConstraint("id", name="alert_pkey"),
    )
    is_open = sa.text("resolved_at IS NULL")
    op.create_index(
        "alert_open",
        "alert",
        ["tenant_id", "workspace_id", "kind", "subject"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_table(
        "alert_notice",
        sa.Column("position", NUMBER, sa.Identity(always=True), nullable=False),
        sa.Column("alert_id", NAME, nullable=False),
        sa.Column("tenant_id", NAME, nullable=False),
        sa.Column("workspace_id", NAME, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("sent_at", TIME),
        sa.PrimaryKeyConstraint("position", name="alert_notice_pkey"),
        sa.CheckConstraint("state IN ('raised', 'resolved')", name="alert_notice_state"),
    )
    waits = sa.text("sent_at IS NULL")
    op.create_index(
        "alert_notice_waiting",
        "alert_notice",
        ["tenant_id", "workspace_id", "position"],
        sqlite_where=waits,
        postgresql_where=waits,
    )
