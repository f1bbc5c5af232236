"""Consumers for which clean-up keeps what they were told of last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the column: those that are there hold nothing."""
    op.add_column("consumer", sa.Column("holds", sa.Boolean, nullable=False, server_default=sa.text("false")))
