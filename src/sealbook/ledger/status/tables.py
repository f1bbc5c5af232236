"""The status of partitions, and whose runs are whose: the only place that names their columns.

Days and times are whole numbers on both databases, of days and of microseconds since 1970 in UTC: whether a
partition is stale is then one comparison of numbers, the same in both.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Column,
    Identity,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from sealbook.ledger.db.tables import metadata
from sealbook.ledger.db.types import Name

SERIES = ("source", "customer_id", "query_name")
"""What names a series: all of a key but the day."""

MICROSECONDS_A_DAY = 86_400_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()

status_series = Table(
    "status_series",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("projection_id", BigInteger, nullable=False),
    Column("source", Name, nullable=False),
    Column("customer_id", Name, nullable=False),
    Column("query_name", Name, nullable=False),
    UniqueConstraint("projection_id", *SERIES, name="status_series_name"),
)
"""The partitions of one customer and query, day by day, go by the number of their series."""

partition_status = Table(
    "partition_status",
    metadata,
    Column("series_id", Integer, nullable=False),
    Column("day", Integer, nullable=False),
    Column("availability", Text, nullable=False),
    Column("materialized_at", BigInteger),
    Column("attempt_at", BigInteger),
    Column("attempt_outcome", Text),
    Column("attempt_stage", Text),
    Column("validator_id", Integer),
    Column("materialized_run", Integer),
    Column("attempt_run", Integer),
    Column("materialized_version", BigInteger),
    Column("attempt_version", BigInteger),
    Column("changed_at", BigInteger, nullable=False),
    Column("changed_version", BigInteger, nullable=False),
    Column("stale_since", BigInteger),
    Column("stale_reason", Text),
    PrimaryKeyConstraint("series_id", "day"),
    sqlite_with_rowid=False,
)
"""What the facts about each partition add up to. Runs go by their number in `run_head`.

A version is the position in the feed of the event that a group of columns is from; `changed` is the latest
event of all. The validator is the one that last accepted what is materialized. Only a sweep writes `stale_*`.
"""

run_scope = Table(
    "run_scope",
    metadata,
    Column("run_id", Name, nullable=False),
    Column("tenant_id", Text, nullable=False),
    Column("workspace_id", Text, nullable=False),
    PrimaryKeyConstraint("run_id"),
)
"""Which runs belong to books of another scope than the default one, of whose runs there is no row."""


def day_number(day: date) -> int:
    """Return a day as the table has it."""
    return day.toordinal() - _EPOCH_DAY


def day_of(number: int) -> date:
    """Return the day of a number."""
    return date.fromordinal(number + _EPOCH_DAY)


def time_of(microseconds: int | None) -> datetime | None:
    """Return the time of a number."""
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)
