"""What is said about pointers, in the transaction that moves them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from sealbook.clock import Clock
from sealbook.ledger.db.types import in_utc
from sealbook.ledger.events.append import append
from sealbook.ledger.pointers import Announce
from sealbook.model import RunEvent
from sealbook.model.pipeline_events import partition_hidden, partition_published
from sealbook.model.publication import PointerMove, PointerPublished


def to_event_log(clock: Clock) -> Announce:
    """Return an announcement that appends an event for each pointer that was moved."""

    def announce(connection: Connection, moves: Sequence[PointerMove]) -> None:
        append(connection, [_event(move) for move in moves], in_utc(clock()))

    return announce


def _event(move: PointerMove) -> RunEvent:
    if isinstance(move, PointerPublished):
        staged = move.staged
        return partition_published(
            staged.key,
            staged.artifact.run_id,
            attempt=move.attempt,
            schema_version=staged.artifact.schema_version,
            record_count=staged.record_count,
            size=staged.bytes,
            digest=staged.digest,
            location=staged.location,
            replaced_run_id=move.replaced_run_id,
        )
    artifact = move.artifact
    return partition_hidden(artifact.key, artifact.run_id, attempt=move.attempt, status=move.status)
