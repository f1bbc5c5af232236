"""Events as rows of Parquet files: the whole event as JSON, and columns to filter by."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from sealbook.ledger.events import FeedEvent

SCHEMA = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("run_seq", pa.int64(), nullable=False),
        pa.field("event_type", pa.string(), nullable=False),
        pa.field("step_id", pa.string()),
        pa.field("logical_attempt_id", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("emitted_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("persisted_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("event", pa.string(), nullable=False),
    ]
)


def event_table(events: Iterable[FeedEvent]) -> pa.Table:
    """Return events as a table of `SCHEMA`, in the order given."""
    return pa.Table.from_pylist(
        [
            {
                "position": each.position,
                "run_id": event.run_id,
                "run_seq": event.run_seq,
                "event_type": event.event_type,
                "step_id": event.step_id,
                "logical_attempt_id": event.logical_attempt_id,
                "partition": event.partition,
                "emitted_at": event.emitted_at,
                "persisted_at": event.persisted_at,
                "event": event.to_json(),
            }
            for each in events
            for event in [each.event]
        ],
        SCHEMA,
    )
