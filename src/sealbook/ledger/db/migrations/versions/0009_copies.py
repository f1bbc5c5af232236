"""Names of files carry digests, removals are by copy and leave load records, the warehouse keeps its time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

ARTIFACT = ("source", "customer_id", "query_name", "logical_date", "run_id", "schema_version")
TIME = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add what names files: those that are there are the first copies, in the first format."""
    op.add_column("load_record", sa.Column("format", sa.Integer, nullable=False, server_default=sa.text("1")))
    op.add_column("load_record", sa.Column("copy", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("load_record", sa.Column("part_digests", sa.Text))
    op.add_column("warehouse_version", sa.Column("changed_at", TIME))
    op.execute(
        "UPDATE warehouse_version SET changed_at = (SELECT max(at) FROM (SELECT max(published_at) AS at"
        " FROM pointer UNION ALL SELECT max(closed_at) FROM pointer) AS latest)"
    )
    _number_removals()


def _number_removals() -> None:
    artifact = ", ".join(ARTIFACT)
    # What was removed and loaded again since is not removed any more.
    op.execute(
        f"CREATE TEMPORARY TABLE removal_before AS SELECT {artifact}, condemned_at, removed_version"
        " FROM removal AS r WHERE removed_version IS NULL"
        " OR NOT EXISTS (SELECT 1 FROM load_record AS l WHERE "
        + " AND ".join(f"l.{name} = r.{name}" for name in ARTIFACT)
        + ")"
    )
    op.drop_table("removal")
    op.create_table(
        "removal",
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("logical_date", sa.Date, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("schema_version", sa.Text, nullable=False),
        sa.Column("copy", sa.Integer, nullable=False),
        sa.Column("condemned_at", TIME, nullable=False),
        sa.Column("removed_at", TIME),
        sa.PrimaryKeyConstraint(*ARTIFACT, name="removal_pkey"),
        sqlite_with_rowid=False,
    )
    op.execute(
        f"INSERT INTO removal ({artifact}, copy, condemned_at, removed_at)"
        f" SELECT {artifact}, 0, condemned_at,"
        " CASE WHEN removed_version IS NULL THEN NULL ELSE condemned_at END FROM removal_before"
    )
    op.execute("DROP TABLE removal_before")
