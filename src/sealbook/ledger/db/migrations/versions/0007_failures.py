"""Failures of partitions are found without a look at the whole log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the index."""
    failed = sa.text("event_type = 'PartitionFailed'")
    op.create_index(
        "run_event_failed", "run_event", ["partition"], sqlite_where=failed, postgresql_where=failed
    )
