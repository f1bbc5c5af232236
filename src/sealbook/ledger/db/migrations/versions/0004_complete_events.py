"""Events name their partition, contracts are kept by hash, and leases are a table of their own."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

TIME = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
NEVER = "events are never changed or deleted; retention removes whole runs"
FUNCTIONS = Path(__file__).parents[1] / "functions"


def upgrade() -> None:
    """Add the column and the tables; on PostgreSQL, one function that appends in place of two."""
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    op.add_column("run_event", sa.Column("partition", NAME))
    if on_postgresql:
        _fill_partition_on_postgresql()
        _replace_functions()
    else:
        _fill_partition_on_sqlite()
    of_partitions = sa.text("partition IS NOT NULL")
    op.create_index(
        "run_event_partition",
        "run_event",
        ["partition", "position"],
        sqlite_where=of_partitions,
        postgresql_where=of_partitions,
    )
    _create_contracts()
    _create_leases()
    _create_newest_run()
    # Snapshots count more than they did: the next projector makes them anew from the log.
    op.execute("DELETE FROM run_snapshot")
    op.execute("DELETE FROM projection")
    if on_postgresql:
        op.drop_constraint("projection_lease", "projection")
        op.drop_column("projection", "holder")
        op.drop_column("projection", "held_until")
    else:
        _create_projections_without_lease()


def _fill_partition_on_postgresql() -> None:
    op.execute("ALTER TABLE run_event DISABLE TRIGGER run_event_update")
    op.execute(
        "UPDATE run_event SET partition = event_data->>'partition'"
        " WHERE json_typeof(event_data->'partition') = 'string'"
    )
    op.execute("ALTER TABLE run_event ENABLE TRIGGER run_event_update")


def _fill_partition_on_sqlite() -> None:
    op.execute("DROP TRIGGER run_event_update")
    op.execute(
        "UPDATE run_event SET partition = json_extract(event_data, '$.partition')"
        " WHERE json_type(event_data, '$.partition') = 'text'"
    )
    op.execute(
        f"""
        CREATE TRIGGER run_event_update BEFORE UPDATE ON run_event
        BEGIN
            SELECT RAISE(ABORT, '{NEVER}');
        END
        """
    )


def _replace_functions() -> None:
    connection = op.get_bind()
    op.execute("DROP FUNCTION run_event_append_one")
    op.execute("DROP FUNCTION run_event_append")
    schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
    for name in ("run_event_lock", "run_event_append"):
        connection.exec_driver_sql((FUNCTIONS / f"{revision}_{name}.sql").read_text(encoding="utf-8"))
        # It acts with its owner's rights, so it looks names up in this ledger's schema only.
        op.execute(f"ALTER FUNCTION {name} SECURITY DEFINER SET search_path = {schema}, pg_temp")
        op.execute(f"REVOKE EXECUTE ON FUNCTION {name} FROM PUBLIC")


def _create_contracts() -> None:
    op.create_table(
        "contract",
        sa.Column("hash", NAME, nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("schema_version", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("hash", name="contract_pkey"),
    )
    op.create_table(
        "contract_in_force",
        sa.Column("source", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("schema_version", sa.Text, nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("hash", NAME, nullable=False),
        sa.PrimaryKeyConstraint(
            "source", "query_name", "schema_version", "since", name="contract_in_force_pkey"
        ),
    )


def _create_leases() -> None:
    op.create_table(
        "lease",
        sa.Column("name", NAME, nullable=False),
        sa.Column("holder", sa.Text),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("expires_at", TIME),
        sa.PrimaryKeyConstraint("name", name="lease_pkey"),
        sa.CheckConstraint("(holder IS NULL) = (expires_at IS NULL)", name="lease_held"),
    )


def _create_projections_without_lease() -> None:
    op.drop_table("projection")  # for SQLite drops no column that a constraint names
    op.create_table(
        "projection",
        sa.Column("id", NUMBER, sa.Identity(always=True), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="projection_pkey"),
        sa.UniqueConstraint("name", "active", name="projection_name"),
    )


def _create_newest_run() -> None:
    newest = op.create_table(
        "newest_run",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="newest_run_pkey"),
        sa.CheckConstraint("id = 1", name="newest_run_one_row"),
    )
    op.bulk_insert(newest, [{"id": 1, "run_id": ""}])
