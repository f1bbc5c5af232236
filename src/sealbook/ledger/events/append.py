"""The append authority: it numbers a run's events in the order of their commits (R-EVT-2, R-EVT-4).

On PostgreSQL it is a function in the database: an append is one round trip, and nobody gets round it. On
SQLite, where only one can write at a time, it is the transaction itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, func, literal_column, select, tuple_
from sqlalchemy.dialects import sqlite

from sealbook.ledger.driver import Execute, within
from sealbook.ledger.events.port import AppendResult
from sealbook.ledger.events.rows import JSON_COLUMNS, payload, row_values
from sealbook.ledger.events.tables import run_event, run_head
from sealbook.ledger.types import json_text, utc_text
from sealbook.model.events import RunEvent


class _Told(NamedTuple):
    """An event that is to be stored, and its data as it would be stored."""

    event: RunEvent
    data: bytes


class _Stored(NamedTuple):
    """The number of a stored event, and its data if it was stored before this append."""

    run_seq: int
    data: bytes | None


def append(connection: Connection, events: Sequence[RunEvent], at: datetime) -> list[AppendResult]:
    """Append events inside the caller's transaction; results come in the order given.

    The heads of their runs stay locked until the transaction ends. So append once, after all other writes:
    then all transactions take their locks in one order, and none waits for a run longer than it must.
    """
    return append_with(within(connection), connection.dialect.name, events, at) if events else []


def append_with(
    execute: Execute, dialect: str, events: Sequence[RunEvent], at: datetime
) -> list[AppendResult]:
    """Append one or more events by means of a driver."""
    told = [_Told(event, payload(event)) for event in events]
    firsts: dict[str, int] = {}  # by idempotency key, which says the run too (R-EVT-3)
    for index, event in enumerate(events):
        firsts.setdefault(event.idempotency_key, index)
    distinct = sorted(firsts.values(), key=lambda index: events[index].run_id)
    store = _store_in_postgresql if dialect == "postgresql" else _store_in_sqlite
    stored = dict(zip(distinct, store(execute, [told[index] for index in distinct], at), strict=True))
    results = []
    for index, event in enumerate(events):
        first = firsts[event.idempotency_key]
        run_seq, data = stored[first]
        if data is None and index == first:
            results.append(AppendResult(run_seq, idempotent=False, persisted=True))
        else:
            conflict = told[index].data != (told[first].data if data is None else data)
            results.append(AppendResult(run_seq, idempotent=True, persisted=False, conflict=conflict))
    return results


_VALUES = ", ".join(["%s"] * len(run_event.c))
_APPEND_ONE = f"SELECT seq, stored FROM run_event_append_one(ROW({_VALUES})::run_event)"
_APPEND_MANY = "SELECT seq, stored FROM run_event_append(%s)"


def _store_in_postgresql(execute: Execute, told: Sequence[_Told], at: datetime) -> list[_Stored]:
    persisted_at = utc_text(at)
    rows = [row_values(event, data, None, persisted_at) for event, data in told]
    if len(rows) == 1:
        stored = execute(_APPEND_ONE, rows[0])
    else:
        stored = execute(_APPEND_MANY, (json_text([_members(row) for row in rows]),))
    return [_Stored(seq, None if data is None else data.encode()) for seq, data in stored]


def _members(row: tuple[Any, ...]) -> dict[str, Any]:
    """Name the values of a row, so that JSON in it stays JSON and does not become text."""
    members = dict(zip(run_event.c.keys(), row, strict=True))
    for name in JSON_COLUMNS:
        if members[name] is not None:
            members[name] = msgspec.Raw(members[name])
    return members


def _store_in_sqlite(execute: Execute, told: Sequence[_Told], at: datetime) -> list[_Stored]:
    statements = _sqlite_statements()
    runs = json_text({event.run_id for event, _ in told})
    heads: dict[str, int] = dict(execute(statements.heads, (runs,)))
    known: dict[str, _Stored] = {}
    if heads:
        keys = json_text([(event.run_id, event.idempotency_key) for event, _ in told])
        found = execute(statements.known, (keys,))
        known = {key: _Stored(run_seq, data.encode()) for key, run_seq, data in found}
    stored: list[_Stored] = []
    rows = []
    persisted_at = utc_text(at)
    for event, data in told:
        each = known.get(event.idempotency_key)
        if each is None:
            each = _Stored(heads.get(event.run_id, 0) + 1, None)
            heads[event.run_id] = each.run_seq
            rows.append(row_values(event, data, each.run_seq, persisted_at))
        stored.append(each)
    if rows:
        execute(statements.insert, rows)
        execute(statements.move, list(heads.items()))
    return stored


class _SqliteStatements(NamedTuple):
    heads: str
    known: str
    insert: str
    move: str


@cache
def _sqlite_statements() -> _SqliteStatements:
    """Compile for the driver: SQLAlchemy's own way takes longer than the statements themselves."""
    run = func.json_each(bindparam("runs")).table_valued("value", name="run")
    key = func.json_each(bindparam("keys")).table_valued("value", name="key")
    of_key = [func.json_extract(key.c.value, literal_column(path)) for path in ("'$[0]'", "'$[1]'")]
    found = (run_event.c.idempotency_key, run_event.c.run_seq, run_event.c.event_data)
    move = sqlite.insert(run_head)
    statements = (
        select(run_head).join(run, run_head.c.run_id == run.c.value),
        select(*found).join(key, tuple_(run_event.c.run_id, run_event.c.idempotency_key) == tuple_(*of_key)),
        sqlite.insert(run_event),
        move.on_conflict_do_update(index_elements=["run_id"], set_={"last_seq": move.excluded.last_seq}),
    )
    return _SqliteStatements(*(str(each.compile(dialect=sqlite.dialect())) for each in statements))
