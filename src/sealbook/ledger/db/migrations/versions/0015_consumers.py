"""Consumers that follow changes, indexes of when pointers began and ended; cuts in the log of overrides."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ACTIONS = (
    "action IN ('requeue', 'rollback', 'reprocess', 'backfill', 'pause', 'resume', 'mark', 'clear',"
    " 'cancel', 'cut')"
)


def upgrade() -> None:
    """Create the table and the indexes, and let the log of overrides tell of cuts."""
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
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("override_log_action", "override_log")
        op.create_check_constraint("override_log_action", "override_log", ACTIONS)
    else:
        _renew_log_on_sqlite()


def _renew_log_on_sqlite() -> None:
    """Make the table anew: SQLite cannot change a CHECK of one that is there."""
    op.execute("ALTER TABLE override_log RENAME TO override_log_old")
    op.create_table(
        "override_log",
        sa.Column("id", ID, sa.Identity(always=True), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("filter", DOCUMENT),
        sa.Column("keys", DOCUMENT, nullable=False),
        sa.Column("run_id", NAME),
        sa.PrimaryKeyConstraint("id", name="override_log_pkey"),
        sa.CheckConstraint(ACTIONS, name="override_log_action"),
    )
    columns = "id, at, actor, action, reason, filter, keys, run_id"
    op.execute(f"INSERT INTO override_log ({columns}) SELECT {columns} FROM override_log_old")
    op.execute("DROP TABLE override_log_old")
