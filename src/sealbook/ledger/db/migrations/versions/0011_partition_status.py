"""Partition status is projected, runs have a scope, validators name their contract."""

from __future__ import annotations

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
CHECKS_VERSIONS = ("1", "2")
"""Those that a validator version was made with until now: a hash of it and of the contract."""


def upgrade() -> None:
    """Create the tables; the projection is made from the log by whoever next catches up with it."""
    op.create_table(
        "status_series",
        sa.Column("id", sa.Integer, sa.Identity(always=True), nullable=False),
        sa.Column("projection_id", sa.BigInteger, nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="status_series_pkey"),
        sa.UniqueConstraint(
            "projection_id", "source", "customer_id", "query_name", name="status_series_name"
        ),
    )
    op.create_table(
        "partition_status",
        sa.Column("series_id", sa.Integer, nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("availability", sa.Text, nullable=False),
        sa.Column("materialized_at", sa.BigInteger),
        sa.Column("attempt_at", sa.BigInteger),
        sa.Column("attempt_outcome", sa.Text),
        sa.Column("attempt_stage", sa.Text),
        sa.Column("validator_id", sa.Integer),
        sa.Column("materialized_run", sa.Integer),
        sa.Column("attempt_run", sa.Integer),
        sa.Column("materialized_version", sa.BigInteger),
        sa.Column("attempt_version", sa.BigInteger),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("changed_version", sa.BigInteger, nullable=False),
        sa.Column("stale_since", sa.BigInteger),
        sa.Column("stale_reason", sa.Text),
        sa.PrimaryKeyConstraint("series_id", "day", name="partition_status_pkey"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_scope",
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("tenant_id", sa.Text, nullable=False),
        sa.Column("workspace_id", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="run_scope_pkey"),
    )
    op.add_column("validator", sa.Column("contract_hash", NAME))
    _name_contracts()


def _name_contracts() -> None:
    """Find the contract of each validator that is known by a hash of it."""
    connection = op.get_bind()
    for digest in connection.execute(sa.text("SELECT hash FROM contract")).scalars().all():
        for checks in CHECKS_VERSIONS:
            connection.execute(
                sa.text("UPDATE validator SET contract_hash = :digest WHERE version = :version"),
                {"digest": digest, "version": sha256(f"{checks}|{digest}".encode()).hexdigest()},
            )
