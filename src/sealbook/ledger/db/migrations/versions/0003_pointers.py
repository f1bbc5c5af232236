"""Pointers to published artifacts, their history, load records and cuts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

KEY = ("source", "customer_id", "query_name", "logical_date")
BY_QUERY = ("query_name", "source", "customer_id", "logical_date")
ARTIFACT = (*KEY, "run_id", "schema_version")
TIME = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables, and the triggers that note every change of authority."""
    _create_published()
    _create_cuts()
    _create_authority_changes()
    if op.get_bind().dialect.name == "postgresql":
        _create_postgresql_triggers()
    else:
        _create_sqlite_triggers()


def _create_published() -> None:
    op.create_table(
        "load_record",
        *_artifact_columns(),
        sa.Column("loaded_at", TIME, nullable=False),
        sa.Column("record_count", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("parts", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint(*ARTIFACT, name="load_record_pkey"),
        sa.CheckConstraint("record_count >= 0 AND bytes >= 0 AND parts >= 1", name="load_record_counts"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pointer",
        *_artifact_columns(),
        sa.Column("valid_from", sa.BigInteger, nullable=False),
        sa.Column("valid_to", sa.BigInteger),
        sa.Column("published_at", TIME, nullable=False),
        sa.Column("closed_at", TIME),
        sa.PrimaryKeyConstraint(*BY_QUERY, "valid_from", name="pointer_pkey"),
        sa.CheckConstraint("valid_to > valid_from", name="pointer_span"),
        sa.CheckConstraint("(valid_to IS NULL) = (closed_at IS NULL)", name="pointer_closed"),
        sqlite_with_rowid=False,
    )
    still_open = sa.text("valid_to IS NULL")
    op.create_index(
        "pointer_open",
        "pointer",
        BY_QUERY,
        unique=True,
        sqlite_where=still_open,
        postgresql_where=still_open,
    )


def _create_cuts() -> None:
    versions = op.create_table(
        "warehouse_version",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="warehouse_version_pkey"),
        sa.CheckConstraint("id = 1", name="warehouse_version_one_row"),
    )
    op.bulk_insert(versions, [{"id": 1, "version": 0}])
    op.create_table(
        "cut",
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("note", sa.Text),
        sa.PrimaryKeyConstraint("token", name="cut_pkey"),
    )
    op.create_table(
        "removal",
        *_artifact_columns(),
        sa.Column("condemned_at", TIME, nullable=False),
        sa.Column("removed_version", sa.BigInteger),
        sa.PrimaryKeyConstraint(*ARTIFACT, name="removal_pkey"),
        sqlite_with_rowid=False,
    )


def _create_authority_changes() -> None:
    op.create_table(
        "authority_change",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity(always=True), nullable=False
        ),
        *_key_columns(),
        sa.PrimaryKeyConstraint("id", name="authority_change_pkey"),
    )
    op.create_index("authority_change_key", "authority_change", KEY)
    # Nothing is published yet: all that was accepted so far is to be loaded.
    key = ", ".join(KEY)
    op.execute(
        f"INSERT INTO authority_change ({key}) SELECT {key} FROM partition_state WHERE status = 'success'"
    )


def _create_sqlite_triggers() -> None:
    values = ", ".join(f"new.{name}" for name in KEY)
    note = f"INSERT INTO authority_change ({', '.join(KEY)}) VALUES ({values});"
    op.execute(
        "CREATE TRIGGER partition_state_inserted AFTER INSERT ON partition_state"
        f" WHEN new.status = 'success' BEGIN {note} END"
    )
    op.execute(
        "CREATE TRIGGER partition_state_updated"
        " AFTER UPDATE OF status, current_run_id, schema_version ON partition_state"
        " WHEN (old.status = 'success' OR new.status = 'success')"
        " AND (old.status, old.current_run_id, old.schema_version)"
        " IS NOT (new.status, new.current_run_id, new.schema_version)"
        f" BEGIN {note} END"
    )


def _create_postgresql_triggers() -> None:
    # Once a statement, not once a row: a verdict of thousands notes them all at once.
    key = ", ".join(KEY)
    op.execute(
        f"""
        CREATE FUNCTION note_authority_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO authority_change ({key}) SELECT {key} FROM new_rows WHERE status = 'success';
            RETURN NULL;
        END $$
        """
    )
    op.execute(
        f"""
        CREATE FUNCTION note_authority_updated() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO authority_change ({key})
            SELECT {key} FROM new_rows n JOIN old_rows o USING ({key})
            WHERE (o.status = 'success' OR n.status = 'success')
            AND (o.status, o.current_run_id, o.schema_version)
                IS DISTINCT FROM (n.status, n.current_run_id, n.schema_version);
            RETURN NULL;
        END $$
        """
    )
    op.execute(
        "CREATE TRIGGER partition_state_inserted AFTER INSERT ON partition_state"
        " REFERENCING NEW TABLE AS new_rows"
        " FOR EACH STATEMENT EXECUTE FUNCTION note_authority_inserted()"
    )
    op.execute(
        "CREATE TRIGGER partition_state_updated AFTER UPDATE ON partition_state"
        " REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"
        " FOR EACH STATEMENT EXECUTE FUNCTION note_authority_updated()"
    )


def _key_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME, nullable=False),
        sa.Column("query_name", NAME, nullable=False),
        sa.Column("logical_date", sa.Date, nullable=False),
    ]


def _artifact_columns() -> list[sa.Column[object]]:
    return [
        *_key_columns(),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("schema_version", sa.Text, nullable=False),
    ]
