"""Load records that share the files of another run; what replacements changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add the column, and create the table."""
    op.add_column("load_record", sa.Column("files_run_id", NAME))
    op.create_table(
        "drift",
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("logical_date", sa.Date, nullable=False),
        sa.Column("from_run_id", NAME, nullable=False),
        sa.Column("to_run_id", NAME, nullable=False),
        sa.Column("age_hours", sa.Integer, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("added", sa.BigInteger, nullable=False),
        sa.Column("removed", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("totals", DOCUMENT),
        sa.Column("change", sa.Double, nullable=False),
        sa.Column("problem", sa.Text),
        sa.PrimaryKeyConstraint(
            *("query_name", "source", "customer_id", "logical_date", "from_run_id", "to_run_id"),
            name="drift_pkey",
        ),
        sqlite_with_rowid=False,
    )
