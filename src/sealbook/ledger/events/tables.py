"""The event log, its heads and its projections: the only place that names their columns."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
)
from sqlalchemy.dialects.postgresql import UUID

from sealbook.ledger.db.tables import metadata
from sealbook.ledger.db.types import Name, UtcTimestamp

_Number = BigInteger().with_variant(Integer, "sqlite")
_Digest = LargeBinary().with_variant(UUID(as_uuid=False), "postgresql")  # of 16 bytes

run_head = Table(
    "run_head",
    metadata,
    Column("number", Integer, Identity(always=True), primary_key=True),
    Column("run_id", Name, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    UniqueConstraint("run_id", name="run_head_run"),
)
"""Every run that has or had events: its number, by which the log knows it, and its last event's.

Who holds a run's row on PostgreSQL hands out the run's next numbers (R-EVT-2); on SQLite there is one writer.
"""

run_event = Table(
    "run_event",
    metadata,
    Column("position", _Number, nullable=False),
    Column("run_number", Integer, nullable=False),
    Column("run_seq", BigInteger().with_variant(Integer, "postgresql"), nullable=False),
    Column("persisted_at", UtcTimestamp, nullable=False),
    Column("emitted_at", UtcTimestamp),
    Column("event_key", _Digest, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("step_id", Text),
    Column("logical_attempt_id", Text),
    Column("plan_version", Text),
    Column("partition", Name),
    Column("event_data", LargeBinary, nullable=False),
    Column("rest", LargeBinary),
    PrimaryKeyConstraint("position"),
    UniqueConstraint("run_number", "run_seq", name="run_event_seq"),
    UniqueConstraint("event_key", name="run_event_key"),
    CheckConstraint("run_seq >= 1", name="run_seq"),
    sqlite_autoincrement=True,  # a position is never given twice, not even after its run was retired
)
"""The log. `position` is the place among the events of all runs, in the order of their commits (R-EVT-8).

`event_key` stands for run and idempotency key: half of a sha256 over them. `rows.py` says what columns hold.
"""
# Without the position, which SQLite has in every index, and for which PostgreSQL would spell the partition
# again for each of its events.
Index(
    "run_event_partition",
    run_event.c.partition,
    sqlite_where=run_event.c.partition.is_not(None),
    postgresql_where=run_event.c.partition.is_not(None),
)

# There are few, and a list of partitions asks of each whether its last attempt failed.
_FAILED = run_event.c.event_type == literal_column("'PartitionFailed'")
Index("run_event_failed", run_event.c.partition, sqlite_where=_FAILED, postgresql_where=_FAILED)

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
