"""Open work, the passes by which it is shared out, and pauses: the only place that names their columns."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)

from sealbook.ledger.db.tables import KEY, key_columns, metadata
from sealbook.ledger.db.types import Name, RunIdText, UtcTimestamp

work = Table(
    "work",
    metadata,
    *key_columns(),
    Column("lane", Name, nullable=False),
    Column("kind", Name, nullable=False),
    Column("ready_at", UtcTimestamp, nullable=False),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("rank", BigInteger, nullable=False),
    Column("cost", Integer, nullable=False),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("failing_since", UtcTimestamp),
    Column("cause", Text),
    Column("error", Text),
    Column("contract_hash", Text),
    Column("run_id", RunIdText),
    Column("plan_id", BigInteger),
    Column("paused", Boolean, nullable=False, server_default=text("false")),
    Column("stop", Text),
    Column("setup", Text),
    Column("stopped_by", Text),
    Column("stopped_reason", Text),
    Column("stopped_at", UtcTimestamp),
    Column("holder", Text),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("claimed_at", UtcTimestamp),
    Column("expires_at", UtcTimestamp),
    Column("claim_run_id", RunIdText),
    PrimaryKeyConstraint(*KEY),
    CheckConstraint("lane IN ('fresh', 'retry', 'refresh', 'backfill')", name="lane"),
    CheckConstraint("kind IN ('fetch', 'judge', 'load')", name="kind"),
    CheckConstraint("cost >= 0 AND tries >= 0", name="counts"),
    CheckConstraint("(holder IS NULL) = (expires_at IS NULL)", name="held"),
)
"""What is to be done next about a partition: a row only while something is.

`priority` and `rank` are its place in its flow, the lowest first. A lease is on the row itself: whose it is,
its fence, which every claim raises, and the run as part of which its holder fetches, which stays where the
lease ran out until the log of the run was told of that.
"""
FREE = "holder IS NULL AND stop IS NULL AND NOT paused"
"""Nobody has it, and nothing but its time or its scope holds it back."""
Index(
    "work_free",
    *(work.c[name] for name in ("lane", "source", "customer_id", "priority", "rank")),
    sqlite_where=text(FREE),
    postgresql_where=text(FREE),
)
_ASKS_NOTHING = f"{FREE} AND kind <> 'fetch'"
Index(
    "work_free_asking_nothing",
    *(work.c[name] for name in ("lane", "source", "customer_id", "priority", "rank")),
    sqlite_where=text(_ASKS_NOTHING),
    postgresql_where=text(_ASKS_NOTHING),
)
Index(
    "work_held",
    work.c.expires_at,
    sqlite_where=text("holder IS NOT NULL"),
    postgresql_where=text("holder IS NOT NULL"),
)
Index(
    "work_of_plan",
    work.c.plan_id,
    sqlite_where=text("plan_id IS NOT NULL"),
    postgresql_where=text("plan_id IS NOT NULL"),
)
Index(
    "work_left",
    work.c.claim_run_id,
    sqlite_where=text("holder IS NULL AND claim_run_id IS NOT NULL"),
    postgresql_where=text("holder IS NULL AND claim_run_id IS NOT NULL"),
)

lane_pass = Table(
    "lane_pass",
    metadata,
    Column("lane", Name, nullable=False),
    Column("pass", BigInteger, nullable=False, server_default=text("0")),
    Column("began", BigInteger, nullable=False, server_default=text("0")),
    Column("clock", BigInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("lane"),
)
"""How far each lane has come: the lane with the lowest pass is served next. Whoever claims locks all rows.

`began` is the pass at which it was last served, `clock` that of the flow that was last served in it: what
comes back after it had nothing to do starts there, and not where it had stopped.
"""

flow_pass = Table(
    "flow_pass",
    metadata,
    Column("lane", Name, nullable=False),
    Column("source", Name, nullable=False),
    Column("customer_id", Name, nullable=False),
    Column("pass", BigInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("lane", "source", "customer_id"),
)
"""How far each customer has come in each lane of a source: there once it ever had work in it."""
Index("flow_pass_order", *(flow_pass.c[name] for name in ("lane", "source", "pass", "customer_id")))

pause = Table(
    "pause",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(always=True), primary_key=True),
    Column("source", Name, nullable=False),
    Column("customer_id", Name),
    Column("query_name", Name),
    Column("cause", Text, nullable=False),
    Column("until", UtcTimestamp),
    Column("since", UtcTimestamp, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    CheckConstraint("cause IN ('operator', 'quota')", name="cause"),
)
"""What is not claimed for now: a source, or a customer or a query of one; for good where `until` is null."""
Index("pause_scope", *(pause.c[name] for name in ("source", "customer_id", "query_name")))
