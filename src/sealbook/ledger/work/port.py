"""Who keeps open work in step: handed to every writer that changes what becomes of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from sealbook.model.partition_events import PartitionFact


class Follower(Protocol):
    """Open work follows facts, in the transaction that writes them (R-CTL-2)."""

    def follow(self, connection: Connection, facts: Sequence[PartitionFact], at: datetime) -> None:
        """Take up facts that were just written, and say what is to be done next about their partitions."""
