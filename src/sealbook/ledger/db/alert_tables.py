"""Alerts, and what receivers were told of them: an outbox."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Identity, Index, Integer, Table, Text

from sealbook.ledger.db.tables import metadata
from sealbook.ledger.db.types import Name, UtcTimestamp

_Number = BigInteger().with_variant(Integer, "sqlite")

alert = Table(
    "alert",
    metadata,
    Column("id", Name, primary_key=True),
    Column("tenant_id", Name, nullable=False),
    Column("workspace_id", Name, nullable=False),
    Column("kind", Name, nullable=False),
    Column("subject", Name, nullable=False),
    Column("since", UtcTimestamp),
    Column("message", Text, nullable=False),
    Column("command", Text, nullable=False),
    Column("raised_at", UtcTimestamp, nullable=False),
    Column("resolved_at", UtcTimestamp),
)
"""Every alert that was raised; one without `resolved_at` is not over."""
# One cause is raised once, until it is over.
Index(
    "alert_open",
    *(alert.c[name] for name in ("tenant_id", "workspace_id", "kind", "subject")),
    unique=True,
    sqlite_where=alert.c.resolved_at.is_(None),
    postgresql_where=alert.c.resolved_at.is_(None),
)

alert_notice = Table(
    "alert_notice",
    metadata,
    Column("position", _Number, Identity(always=True), primary_key=True),
    Column("alert_id", Name, nullable=False),
    Column("tenant_id", Name, nullable=False),
    Column("workspace_id", Name, nullable=False),
    Column("state", Text, nullable=False),
    Column("sent_at", UtcTimestamp),
    CheckConstraint("state IN ('raised', 'resolved')", name="state"),
)
"""What is to be told, in this order; it has `sent_at` once the receiver has taken it."""
Index(
    "alert_notice_waiting",
    *(alert_notice.c[name] for name in ("tenant_id", "workspace_id", "position")),
    sqlite_where=alert_notice.c.sent_at.is_(None),
    postgresql_where=alert_notice.c.sent_at.is_(None),
)
