"""Load records that share the files of another run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0015"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column."""
    op.add_column("load_record", sa.Column("files_run_id", NAME))
