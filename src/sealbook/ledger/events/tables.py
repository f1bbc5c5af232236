"""The event log, its heads and its projections: the only place that names their columns."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from sealbook.ledger.db.tables import ONLY_ON, metadata
from sealbook.ledger.db.types import Name, UtcTimestamp

# JSON is kept as the text that it came as. PostgreSQL's jsonb would turn 1e23 into another number; so would
# a column that SQLite takes for a numeric one, 0.0.
_Json = Text().with_variant(JSON(), "postgresql")
_Number = BigInteger().with_variant(Integer, "sqlite")

run_head = Table(
    "run_head",
    metadata,
    Column("run_id", Name, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("run_id"),
    info={ONLY_ON: "postgresql"},
)
"""The append authority of each run: whoever holds its row hands out the run's next numbers (R-EVT-2).

SQLite has one writer at a time, who finds a run's last number in the log itself.
"""

run_event = Table(
    "run_event",
    metadata,
    Column("position", _Number, nullable=False),
    Column("run_id", Name, nullable=False),
    Column("run_seq", BigInteger, nullable=False),
    Column("event_id", Name, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("step_id", Text),
    Column("logical_attempt_id", Text),
    Column("engine_attempt_id", Text),
    Column("plan_version", Text, nullable=False),
    Column("idempotency_key", Name, nullable=False),
    Column("event_data", _Json, nullable=False),
    Column("emitted_at", UtcTimestamp, nullable=False),
    Column("persisted_at", UtcTimestamp, nullable=False),
    Column("adapter_version", Text),
    Column("engine_run_ref", _Json),
    Column("caused_by_signal_id", Text),
    Column("parent_event_id", Text),
    Column("extra", _Json),
    Column("partition", Name),
    PrimaryKeyConstraint("position"),
    UniqueConstraint("run_id", "run_seq", name="run_event_seq"),
    UniqueConstraint("run_id", "idempotency_key", name="run_event_key"),
    CheckConstraint("run_seq >= 1", name="run_seq"),
    sqlite_autoincrement=True,  # a position is never given twice, not even after its run was retired
)
"""The log. `position` is the place among the events of all runs, in the order of their commits (R-EVT-8)."""
Index(
    "run_event_partition",
    run_event.c.partition,
    run_event.c.position,
    sqlite_where=run_event.c.partition.is_not(None),
    postgresql_where=run_event.c.partition.is_not(None),
)

retired_run = Table(
    "retired_run",
    metadata,
    Column("id", _Number, Identity(always=True), primary_key=True),
    Column("run_id", Name, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("event_count", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("retired_at", UtcTimestamp, nullable=False),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Who retired which run. A trigger removes the events that a new row names; nothing else can (R-EVT-5)."""
Index("retired_run_run", retired_run.c.run_id)

projection = Table(
    "projection",
    metadata,
    Column("id", _Number, Identity(always=True), primary_key=True),
    Column("name", Name, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("position", BigInteger, nullable=False),
    UniqueConstraint("name", "active", name="projection_name"),
)
"""How far a projection is. Of each name one is active, which is read, and one may be building anew."""

run_snapshot = Table(
    "run_snapshot",
    metadata,
    Column("projection_id", BigInteger, nullable=False),
    Column("run_id", Name, nullable=False),
    Column("last_event_seq", BigInteger, nullable=False),
    Column("event_count", BigInteger, nullable=False),
    Column("stale_seq", BigInteger),
    Column("status", Text, nullable=False),
    Column("snapshot", Text, nullable=False),
    PrimaryKeyConstraint("projection_id", "run_id"),
    sqlite_with_rowid=False,
)
"""Snapshots as JSON. `stale_seq` marks a run STALE: the log must be read again, as far as this number."""
# There is seldom any, and every look at the feed asks for them.
Index(
    "run_snapshot_stale",
    run_snapshot.c.projection_id,
    run_snapshot.c.run_id,
    sqlite_where=run_snapshot.c.stale_seq.is_not(None),
    postgresql_where=run_snapshot.c.stale_seq.is_not(None),
)

newest_run = Table(
    "newest_run",
    metadata,
    Column("id", Integer, nullable=False, autoincrement=False),
    Column("run_id", Name, nullable=False),
    PrimaryKeyConstraint("id"),
    CheckConstraint("id = 1", name="one_row"),
)
"""The newest run that the ledger has opened, empty before the first; who opens one locks the row."""
