"""Rollbacks hold, and what changes the record count of an authority is loaded again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

KEY = ("source", "customer_id", "query_name", "logical_date")
AUTHORITY = ("status", "current_run_id", "schema_version", "record_count")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table, and let the triggers that note changes of authority look at the count too."""
    op.create_table(
        "rollback",
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("logical_date", sa.Date, nullable=False),
        sa.Column("override_id", sa.BigInteger, nullable=False),
        sa.Column("from_run_id", NAME, nullable=False),
        sa.Column("to_run_id", NAME, nullable=False),
        sa.Column("newest_run_id", NAME, nullable=False),
        sa.PrimaryKeyConstraint(*KEY, "override_id", name="rollback_pkey"),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        _replace_postgresql_trigger()
    else:
        _replace_sqlite_trigger()


def _replace_sqlite_trigger() -> None:
    columns = ", ".join(AUTHORITY)
    before, after = (", ".join(f"{side}.{name}" for name in AUTHORITY) for side in ("old", "new"))
    values = ", ".join(f"new.{name}" for name in KEY)
    op.execute("DROP TRIGGER partition_state_updated")
    op.execute(
        f"CREATE TRIGGER partition_state_updated AFTER UPDATE OF {columns} ON partition_state"
        " WHEN (old.status = 'success' OR new.status = 'success')"
        f" AND ({before}) IS NOT ({after})"
        f" BEGIN INSERT INTO authority_change ({', '.join(KEY)}) VALUES ({values}); END"
    )


def _replace_postgresql_trigger() -> None:
    key = ", ".join(KEY)
    before, after = (", ".join(f"{side}.{name}" for name in AUTHORITY) for side in ("o", "n"))
    op.execute(
        f"""
        CREATE OR REPLACE FUNCTION note_authority_updated() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO authority_change ({key})
            SELECT {key} FROM new_rows n JOIN old_rows o USING ({key})
            WHERE (o.status = 'success' OR n.status = 'success')
            AND ({before}) IS DISTINCT FROM ({after});
            RETURN NULL;
        END $$
        """
    )
