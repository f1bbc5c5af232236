"""The run as part of which a claim is worked on, so that its end can be told if its worker is lost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column, and an index of those that were left."""
    op.add_column("work", sa.Column("claim_run_id", NAME))
    left = sa.text("holder IS NULL AND claim_run_id IS NOT NULL")
    op.create_index("work_left", "work", ["claim_run_id"], sqlite_where=left, postgresql_where=left)
