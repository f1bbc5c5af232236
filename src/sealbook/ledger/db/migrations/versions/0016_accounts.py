"""Accounts that sources told of, with their history, and when each source was asked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "account_sighting",
        sa.Column("id", NUMBER, sa.Identity(always=True), nullable=False),
        sa.Column("tenant_id", NAME, nullable=False),
        sa.Column("workspace_id", NAME, nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("presence", sa.Text, nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("is_open", sa.Boolean, nullable=False),
        sa.Column("is_manager", sa.Boolean, nullable=False),
        sa.Column("is_hidden", sa.Boolean, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("time_zone", sa.Text),
        sa.Column("currency", sa.Text),
        sa.Column("labels", DOCUMENT, nullable=False),
        sa.Column("actor", sa.Text),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("id", name="account_sighting_pkey"),
        sa.CheckConstraint("presence IN ('seen', 'vanished', 'forgotten')", name="account_sighting_presence"),
    )
    op.create_index(
        "account_sighting_of_source", "account_sighting", ["tenant_id", "workspace_id", "source", "id"]
    )
    op.create_table(
        "account_refresh",
        sa.Column("tenant_id", NAME, nullable=False),
        sa.Column("workspace_id", NAME, nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("root", NAME),
        sa.Column("refreshed_at", TIME),
        sa.Column("failed_at", TIME),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", "source", name="account_refresh_pkey"),
    )
