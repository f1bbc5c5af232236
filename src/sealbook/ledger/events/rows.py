"""Run events as rows of the log, and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, Text, bindparam, cast, select

from sealbook.ledger.events.tables import run_event
from sealbook.model.events import RunEvent

_encoder = msgspec.json.Encoder(order="deterministic")
_decode = msgspec.json.Decoder().decode

JSON_COLUMNS = ("event_data", "engine_run_ref", "extra")
# JSON comes as text, on both databases: msgspec reads it several times as fast as their drivers do.
SELECT_EVENTS: Select[Any] = select(
    *(cast(column, Text) if column.name in JSON_COLUMNS else column for column in run_event.c)
)
"""Every column of the log, in the order that `event_from_row` reads."""

_FIELDS = run_event.c.keys()[1:]  # all but the position
_OF_RUN = (
    SELECT_EVENTS.where(
        run_event.c.run_id == bindparam("run_id"), run_event.c.run_seq > bindparam("after_seq")
    )
    .order_by(run_event.c.run_seq)
    .limit(bindparam("limit"))
)


def data_text(event: RunEvent) -> str:
    """Return the event's data as JSON, the same text for the same data."""
    return _encoder.encode(event.event_data).decode()


def row_values(event: RunEvent, data: str, run_seq: int | None, at: datetime) -> tuple[Any, ...]:
    """Return the event's values in the order of the log's columns, JSON as text.

    `data` is its `data_text`, and `at` is when it is persisted. The database gives the position.
    """
    return (
        None,
        event.run_id,
        run_seq,
        event.event_id,
        event.event_type,
        event.step_id,
        event.logical_attempt_id,
        event.engine_attempt_id,
        event.plan_version,
        event.idempotency_key,
        data,
        event.emitted_at or at,
        at,
        event.adapter_version,
        None if event.engine_run_ref is None else _encoder.encode(event.engine_run_ref).decode(),
        event.caused_by_signal_id,
        event.parent_event_id,
        _encoder.encode(event.extra).decode() if event.extra else None,
        event.partition,
    )


def event_from_row(row: Sequence[Any]) -> RunEvent:
    """Build the event from a row of `SELECT_EVENTS`; the columns are named as the event's fields are."""
    fields = dict(zip(_FIELDS, row[1:], strict=True))
    fields["event_data"] = _decode(fields["event_data"])
    if fields["engine_run_ref"] is not None:
        fields["engine_run_ref"] = _decode(fields["engine_run_ref"])
    fields["extra"] = {} if fields["extra"] is None else _decode(fields["extra"])
    return RunEvent.restored(fields)


def read_events(connection: Connection, run_id: str, after_seq: int, limit: int) -> list[RunEvent]:
    """Return the events of a run with a number above `after_seq`, in the order of their numbers."""
    rows = connection.execute(_OF_RUN, {"run_id": run_id, "after_seq": after_seq, "limit": limit}).all()
    return [event_from_row(row) for row in rows]
