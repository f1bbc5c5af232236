"""Open work, the passes by which it is shared out, pauses, budgets, shares of rates, and plans."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"

KEY = ("source", "customer_id", "query_name", "logical_date")
LANES = ("fresh", "retry", "refresh", "backfill")
TIME = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ACTIONS = (
    "action IN ('requeue', 'rollback', 'reprocess', 'backfill', 'pause', 'resume', 'mark', 'clear', 'cancel')"
)


def upgrade() -> None:
    """Create the tables, and let the log of overrides tell of every action."""
    _create_work()
    _create_passes()
    _create_pauses()
    _create_budgets()
    _create_plans()
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("override_log_action", "override_log")
        op.create_check_constraint("override_log_action", "override_log", ACTIONS)
    else:
        _renew_log_on_sqlite()


def _create_work() -> None:
    op.create_table(
        "work",
        *(sa.Column(name, NAME, nullable=False) for name in KEY[:3]),
        sa.Column("logical_date", sa.Date, nullable=False),
        sa.Column("lane", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("ready_at", TIME, nullable=False),
        sa.Column("priority", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("rank", sa.BigInteger, nullable=False),
        sa.Column("cost", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("failing_since", TIME),
        sa.Column("cause", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("contract_hash", sa.Text),
        sa.Column("run_id", NAME),
        sa.Column("plan_id", sa.BigInteger),
        sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.text("false")),
        sa.Column("stop", sa.Text),
        sa.Column("setup", sa.Text),
        sa.Column("stopped_by", sa.Text),
        sa.Column("stopped_reason", sa.Text),
        sa.Column("stopped_at", TIME),
        sa.Column("holder", sa.Text),
        sa.Column("fence", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("claimed_at", TIME),
        sa.Column("expires_at", TIME),
        sa.PrimaryKeyConstraint(*KEY, name="work_pkey"),
        sa.CheckConstraint("lane IN ('fresh', 'retry', 'refresh', 'backfill')", name="work_lane"),
        sa.CheckConstraint("kind IN ('fetch', 'judge', 'load')", name="work_kind"),
        sa.CheckConstraint("cost >= 0 AND tries >= 0", name="work_counts"),
        sa.CheckConstraint("(holder IS NULL) = (expires_at IS NULL)", name="work_held"),
    )
    in_order = ["lane", "source", "customer_id", "priority", "rank"]
    free = "holder IS NULL AND stop IS NULL AND NOT paused"
    for name, columns, where in (
        ("work_free", in_order, free),
        ("work_free_asking_nothing", in_order, f"{free} AND kind <> 'fetch'"),
        ("work_held", ["expires_at"], "holder IS NOT NULL"),
        ("work_of_plan", ["plan_id"], "plan_id IS NOT NULL"),
    ):
        partial = sa.text(where)
        op.create_index(name, "work", columns, sqlite_where=partial, postgresql_where=partial)


def _create_passes() -> None:
    lanes = op.create_table(
        "lane_pass",
        sa.Column("lane", NAME, nullable=False),
        *(
            sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))
            for name in ("pass", "began", "clock")
        ),
        sa.PrimaryKeyConstraint("lane", name="lane_pass_pkey"),
    )
    op.bulk_insert(lanes, [{"lane": name} for name in LANES])
    flow = ("lane", "source", "customer_id")
    op.create_table(
        "flow_pass",
        *(sa.Column(name, NAME, nullable=False) for name in flow),
        sa.Column("pass", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint(*flow, name="flow_pass_pkey"),
    )
    op.create_index("flow_pass_order", "flow_pass", ["lane", "source", "pass", "customer_id"])


def _create_pauses() -> None:
    op.create_table(
        "pause",
        sa.Column("id", ID, sa.Identity(always=True), nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("customer_id", NAME),
        sa.Column("query_name", NAME),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("until", TIME),
        sa.Column("since", TIME, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pause_pkey"),
        sa.CheckConstraint("cause IN ('operator', 'quota')", name="pause_cause"),
    )
    op.create_index("pause_scope", "pause", ["source", "customer_id", "query_name"])


def _create_budgets() -> None:
    op.create_table(
        "spending",
        sa.Column("source", NAME, nullable=False),
        sa.Column("began_at", TIME, nullable=False),
        sa.Column("lane", NAME, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("source", "began_at", "lane", name="spending_pkey"),
    )
    op.create_table(
        "reservation",
        sa.Column("id", ID, sa.Identity(always=True), nullable=False),
        sa.Column("source", NAME, nullable=False),
        sa.Column("lane", NAME, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="reservation_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rate_share",
        sa.Column("source", NAME, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("per_second", sa.Double, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("source", "holder", name="rate_share_pkey"),
    )


def _create_plans() -> None:
    op.create_table(
        "plan",
        sa.Column("id", ID, sa.Identity(always=True), nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("name", NAME),
        sa.Column("state", NAME, nullable=False),
        sa.Column("request", DOCUMENT, nullable=False),
        sa.Column("packed", sa.LargeBinary, nullable=False),
        sa.Column("digest", NAME, nullable=False),
        sa.Column("partitions", sa.Integer, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("previewed_at", TIME, nullable=False),
        sa.Column("carried_out_at", TIME),
        sa.Column("ended_at", TIME),
        sa.PrimaryKeyConstraint("id", name="plan_pkey"),
        sa.CheckConstraint(
            "state IN ('previewed', 'open', 'paused', 'cancelled', 'done')", name="plan_state"
        ),
        sqlite_autoincrement=True,
    )
    named = sa.text("state IN ('open', 'paused')")
    op.create_index("plan_name", "plan", ["name"], unique=True, sqlite_where=named, postgresql_where=named)


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
