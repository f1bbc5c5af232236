"""The append authority: it numbers a run's events in the order of their commits (R-EVT-2, R-EVT-4).

On PostgreSQL it is a function in the database: an append is one round trip, and nobody gets round it. On
SQLite, where only one can write at a time, it is the transaction itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, Text, and_, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from sealbook.errors import Conflict
from sealbook.ledger.db.bulk import encode_rows, given_rows, insert_rows
from sealbook.ledger.db.types import json_text
from sealbook.ledger.events.port import AppendResult
from sealbook.ledger.events.rows import JSON_COLUMNS, data_text, row_values
from sealbook.ledger.events.tables import retired_run, run_event
from sealbook.model.events import RunEvent


def append(connection: Connection, events: Sequence[RunEvent], at: datetime) -> list[AppendResult]:
    """Append events inside the caller's transaction, and say what became of each, in the order given.

    The heads of their runs stay locked until the transaction ends. So append once, and all at once: then all
    transactions take their locks in one order. To write other rows first, begin with `lock_runs`.
    """
    if not events:
        return []
    if connection.dialect.name == "postgresql":
        return _append_on_postgresql(connection, events, at)
    return _append_on_sqlite(connection, events, at)


def append_new(connection: Connection, events: Sequence[RunEvent], at: datetime) -> list[AppendResult]:
    """Append events, or raise Conflict where the key of one is taken by another payload (R-EVT-10).

    The caller's transaction is rolled back then, with all that the event stands for.
    """
    results = append(connection, events, at)
    for event, result in zip(events, results, strict=True):
        if result.conflict:
            step = "the run itself" if event.step_id is None else f"step {event.step_id}"
            raise Conflict(
                f"run {event.run_id} has a {event.event_type} of {step} already, as its event"
                f" {result.run_seq}, and with another payload",
                remedy="Nothing was written. `sealbook events` shows what is stored; what is to be said anew"
                " needs an attempt or a run of its own.",
            )
    return results


def lock_runs(connection: Connection, run_ids: Iterable[str]) -> None:
    """Wait for whoever else appends to these runs, and keep others waiting until the transaction ends.

    On SQLite, a writer is alone from the start.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"run_ids": [str.__str__(run_id) for run_id in run_ids]})


_LOCK = text("SELECT run_event_lock(:run_ids)").bindparams(bindparam("run_ids", type_=ARRAY(Text)))
_APPEND = text("SELECT seq, persisted, conflict FROM run_event_append(:events)")


def _append_on_postgresql(
    connection: Connection, events: Sequence[RunEvent], at: datetime
) -> list[AppendResult]:
    by_run = sorted(range(len(events)), key=lambda index: events[index].run_id)
    given = [_members(row_values(events[index], data_text(events[index]), None, at)) for index in by_run]
    results: dict[int, AppendResult] = {}
    for index, row in zip(by_run, connection.execute(_APPEND, {"events": json_text(given)}), strict=True):
        run_seq, persisted, conflict = row
        results[index] = AppendResult(run_seq, not persisted, persisted, conflict)
    return [results[index] for index in range(len(events))]


def _members(row: Sequence[Any]) -> dict[str, Any]:
    """Name the values of a row, so that JSON in it stays JSON and does not become text."""
    members = dict(zip(run_event.c.keys(), row, strict=True))
    for name in JSON_COLUMNS:
        if members[name] is not None:
            members[name] = msgspec.Raw(members[name])
    return members


class _Stored(NamedTuple):
    """The number of a stored event, and its payload."""

    run_seq: int
    event_data: str
    partition: str | None


def _append_on_sqlite(connection: Connection, events: Sequence[RunEvent], at: datetime) -> list[AppendResult]:
    runs = encode_rows({"run_id": run_id} for run_id in {event.run_id for event in events})
    heads = {row[0]: row[1] for row in connection.execute(_HEADS, runs)}
    keys = encode_rows({"run_id": event.run_id, "idempotency_key": event.idempotency_key} for event in events)
    known = {(row[0], row[1]): _Stored(*row[2:]) for row in connection.execute(_KNOWN, keys)}
    results: list[AppendResult] = []
    new: list[tuple[Any, ...]] = []
    for event in events:
        key = (event.run_id, event.idempotency_key)
        data = data_text(event)
        stored = known.get(key)
        if stored is None:
            heads[event.run_id] = run_seq = heads[event.run_id] + 1
            known[key] = _Stored(run_seq, data, event.partition)
            new.append(row_values(event, data, run_seq, at))
            results.append(AppendResult(run_seq, idempotent=False, persisted=True))
        else:
            conflict = stored[1:] != (data, event.partition)
            results.append(AppendResult(stored.run_seq, idempotent=True, persisted=False, conflict=conflict))
    if new:
        insert_rows(connection, run_event, new)
    return results


def _heads() -> Select[Any]:
    """Ask for the last number that each run was given; what is retired keeps its numbers."""
    given = given_rows("sqlite", [run_event.c.run_id])

    def last(numbers: ColumnElement[int], of_run: ColumnElement[str]) -> ColumnElement[int]:
        newest = select(func.max(numbers)).where(of_run == given.c.run_id).scalar_subquery()
        return func.coalesce(newest, 0)

    stored = last(run_event.c.run_seq, run_event.c.run_id)
    return select(given.c.run_id, func.max(stored, last(retired_run.c.last_seq, retired_run.c.run_id)))


def _known() -> Select[Any]:
    """Ask for the events whose keys are stored already."""
    given = given_rows("sqlite", [run_event.c.run_id, run_event.c.idempotency_key])
    found = (*given.c, run_event.c.run_seq, run_event.c.event_data, run_event.c.partition)
    same = and_(run_event.c.run_id == given.c.run_id, run_event.c.idempotency_key == given.c.idempotency_key)
    return select(*found).join(run_event, same)


_HEADS = _heads()
_KNOWN = _known()
