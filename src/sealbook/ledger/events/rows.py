"""Run events as rows of the log, and back: what follows from other columns is not stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from sealbook.ledger.events.packing import pack, unpack
from sealbook.ledger.events.tables import run_event, run_head
from sealbook.model.events import DerivedIdentity, RunEvent

_COLUMNS = tuple(
    run_event.c[name]
    for name in (
        "run_seq",
        "event_type",
        "step_id",
        "logical_attempt_id",
        "plan_version",
        "partition",
        "event_data",
        "emitted_at",
        "persisted_at",
        "rest",
    )
)
SELECT_EVENTS: Select[Any] = select(run_event.c.position, run_head.c.run_id, *_COLUMNS).join(
    run_head, run_head.c.number == run_event.c.run_number
)
"""The events of the log, as `event_from_row` reads them; further conditions may name `run_event`."""

_PLAN_VERSION = "1"  # of nearly all events: not stored
_PARTITION = "|"  # in a step id, which has no such character: the event's partition
_REST = (
    "engine_attempt_id",
    "adapter_version",
    "engine_run_ref",
    "caused_by_signal_id",
    "parent_event_id",
)
"""What few events have, beside `extra`."""


def of_run(run_id: str | ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that picks the events of a run."""
    number = select(run_head.c.number).where(run_head.c.run_id == run_id).scalar_subquery()
    return run_event.c.run_number == number


_OF_RUN = (
    SELECT_EVENTS.where(of_run(bindparam("run_id")), run_event.c.run_seq > bindparam("after_seq"))
    .order_by(run_event.c.run_seq)
    .limit(bindparam("limit"))
)


def event_key(derived: DerivedIdentity) -> bytes:
    """Return what the log knows an event by: half of the digest of its run and idempotency key."""
    return bytes.fromhex(derived.digest[:32])


def packed_data(event: RunEvent) -> bytes:
    """Return the event's data as the log has it, the same for the same data."""
    return pack(event.event_data, event.run_id, event.partition)


def stored_values(event: RunEvent, derived: DerivedIdentity, data: bytes, at: datetime) -> dict[str, Any]:
    """Return what the log stores of an event, by column; `data` is packed, `at` is when it is persisted.

    Where it is stored, its run and its number there, is for the append authority to say.
    """
    return {
        "event_key": event_key(derived),
        "event_type": event.event_type,
        "step_id": _short_step(event),
        "logical_attempt_id": event.logical_attempt_id,
        "plan_version": None if event.plan_version == _PLAN_VERSION else event.plan_version,
        "partition": event.partition,
        "event_data": data,
        "emitted_at": None if event.emitted_at == at else event.emitted_at,
        "persisted_at": at,
        "rest": _packed_rest(event, derived),
    }


def event_from_row(row: Sequence[Any]) -> RunEvent:
    """Build the event from a row of `SELECT_EVENTS`."""
    _, run_id, run_seq, event_type, step_id, attempt, plan_version, partition, data, emitted, at, rest = row
    fields = {
        "run_id": run_id,
        "event_type": event_type,
        "step_id": step_id,
        "logical_attempt_id": attempt,
        "plan_version": plan_version or _PLAN_VERSION,
        "event_data": unpack(data, run_id, partition),
        "emitted_at": emitted or at,
        "event_id": "",
        "idempotency_key": "",
        "run_seq": run_seq,
        "persisted_at": at,
        "engine_attempt_id": None,
        "adapter_version": None,
        "engine_run_ref": None,
        "caused_by_signal_id": None,
        "parent_event_id": None,
        "partition": partition,
        "extra": {},
    }
    if step_id and step_id[-1] == _PARTITION:
        fields["step_id"] = step_id[:-1] + partition
    if rest is not None:
        fields |= cast("dict[str, Any]", unpack(rest))  # as it was packed
    return RunEvent.restored(fields)


def read_events(connection: Connection, run_id: str, after_seq: int, limit: int) -> list[RunEvent]:
    """Return the events of a run with a number above `after_seq`, in the order of their numbers."""
    rows = connection.execute(_OF_RUN, {"run_id": run_id, "after_seq": after_seq, "limit": limit}).all()
    return [event_from_row(row) for row in rows]


def _short_step(event: RunEvent) -> str | None:
    """Return the step id, with a mark in place of the partition that it ends with."""
    if event.partition and event.step_id and event.step_id.endswith(event.partition):
        return event.step_id.removesuffix(event.partition) + _PARTITION
    return event.step_id


def _packed_rest(event: RunEvent, derived: DerivedIdentity) -> bytes | None:
    """Return what few events have: fields of other engines, and a key or an id of its own."""
    rest = {name: value for name in _REST if (value := getattr(event, name)) is not None}
    if event.extra:
        rest["extra"] = dict(event.extra)
    if event.idempotency_key != derived.idempotency_key:
        rest["idempotency_key"] = event.idempotency_key
    if event.event_id != derived.event_id:
        rest["event_id"] = event.event_id
    return pack(rest) if rest else None
