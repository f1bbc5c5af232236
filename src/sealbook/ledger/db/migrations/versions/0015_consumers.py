"""Consumers that follow changes: their tokens, and indexes of when pointers began and ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    """Create the table and the indexes."""
    op.create_table(
        "consumer",
        sa.Column("name", NAME, nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("advanced_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", "source", "query_name", name="consumer_pkey"),
    )
    op.create_index("pointer_begun", "pointer", ["valid_from"])
    ended = sa.text("valid_to IS NOT NULL")
    op.create_index("pointer_ended", "pointer", ["valid_to"], sqlite_where=ended, postgresql_where=ended)
