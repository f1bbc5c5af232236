"""The append authority: it numbers a run's events in the order of their commits (R-EVT-2, R-EVT-4).

On PostgreSQL it is a function in the database: an append is one round trip, and nobody gets round it. On
SQLite, where only one can write at a time, it is the transaction itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    bindparam,
    func,
    insert,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects import sqlite

from sealbook.ledger.db.bulk import OR_FAIL
from sealbook.ledger.db.driver import Driver, Rows, Within, try_statement, write_idempotent
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.row_statements import EachRow, Values
from sealbook.ledger.db.types import json_text, utc_text
from sealbook.ledger.events.port import AppendResult
from sealbook.ledger.events.rows import JSON_COLUMNS, payload, row_values
from sealbook.ledger.events.tables import retired_run, run_event
from sealbook.model.events import RunEvent


class _Told(NamedTuple):
    """An event that is to be stored, and its data as it would be stored."""

    event: RunEvent
    data: bytes


class _Stored(NamedTuple):
    """The number of a stored event, and its data if it was stored before this append."""

    run_seq: int
    data: bytes | None


def append(connection: Connection, events: Sequence[RunEvent], at: datetime) -> None:
    """Append events inside the caller's transaction.

    The heads of their runs stay locked until the transaction ends. So append once, after all other writes:
    then all transactions take their locks in one order, and none waits for a run longer than it must.
    """
    if events:
        _store_distinct(Within(connection), [_Told(event, payload(event)) for event in events], at)


def append_one(database: Database, event: RunEvent, at: datetime) -> AppendResult:
    """Append one event in a transaction of its own."""
    if database.dialect == "postgresql":
        return _append_one_in_postgresql(database, event, at)
    row = row_values(event, payload(event), None, utc_text(at))
    statement, parameters = _sqlite_statements().insert_next.prepare([row])
    new = try_statement(database, statement, parameters[0])
    if new is None:  # it is known, so a closer look is needed
        return _append_many(database, [event], at)[0]
    return AppendResult(new[0][0], idempotent=False, persisted=True)


def append_all(database: Database, events: Sequence[RunEvent], at: datetime) -> list[AppendResult]:
    """Append events in a transaction of their own; results come in the order given."""
    match events:
        case []:
            return []
        case [event]:
            return [append_one(database, event, at)]
    return _append_many(database, events, at)


def _append_many(database: Database, events: Sequence[RunEvent], at: datetime) -> list[AppendResult]:
    told = [_Told(event, payload(event)) for event in events]
    stored = write_idempotent(database, lambda driver: _store_distinct(driver, told, at))
    results = []
    for index, (event, data) in enumerate(told):
        first, (run_seq, known) = stored[event.idempotency_key]
        if known is None and index == first:
            results.append(AppendResult(run_seq, idempotent=False, persisted=True))
        else:
            conflict = data != (told[first].data if known is None else known)
            results.append(AppendResult(run_seq, idempotent=True, persisted=False, conflict=conflict))
    return results


def _append_one_in_postgresql(database: Database, event: RunEvent, at: datetime) -> AppendResult:
    data = payload(event)
    row = row_values(event, data, None, utc_text(at))
    [(run_seq, known)] = write_idempotent(database, lambda driver: driver.rows(_APPEND_ONE, row))
    if known is None:
        return AppendResult(run_seq, idempotent=False, persisted=True)
    return AppendResult(run_seq, idempotent=True, persisted=False, conflict=known.encode() != data)


def _store_distinct(driver: Driver, told: Sequence[_Told], at: datetime) -> dict[str, tuple[int, _Stored]]:
    """Store the first event of each idempotency key, and return for each key its index and what is stored."""
    firsts: dict[str, int] = {}  # the key says the run too (R-EVT-3)
    for index, (event, _) in enumerate(told):
        firsts.setdefault(event.idempotency_key, index)
    distinct = sorted(firsts.values(), key=lambda index: told[index].event.run_id)
    store = _store_in_postgresql if driver.dialect == "postgresql" else _store_in_sqlite
    stored = store(driver, [told[index] for index in distinct], at)
    return {
        told[index].event.idempotency_key: (index, each) for index, each in zip(distinct, stored, strict=True)
    }


_VALUES = ", ".join(["%s"] * len(run_event.c))
_APPEND_ONE = f"SELECT seq, stored FROM run_event_append_one(ROW({_VALUES})::run_event)"
_APPEND_MANY = "SELECT seq, stored FROM run_event_append(%s)"


def _store_in_postgresql(driver: Driver, told: Sequence[_Told], at: datetime) -> list[_Stored]:
    persisted_at = utc_text(at)
    rows = [row_values(event, data, None, persisted_at) for event, data in told]
    stored = driver.rows(_APPEND_MANY, (json_text([_members(row) for row in rows]),))
    return [_Stored(seq, None if data is None else data.encode()) for seq, data in stored]


def _members(row: tuple[Any, ...]) -> dict[str, Any]:
    """Name the values of a row, so that JSON in it stays JSON and does not become text."""
    members = dict(zip(run_event.c.keys(), row, strict=True))
    for name in JSON_COLUMNS:
        if members[name] is not None:
            members[name] = msgspec.Raw(members[name])
    return members


def _store_in_sqlite(driver: Driver, told: Sequence[_Told], at: datetime) -> list[_Stored]:
    """Number the events and insert them as if all were new, which most are; look closer where one is not."""
    statements = _sqlite_statements()
    persisted_at = utc_text(at)
    heads: dict[str, int] = dict(
        driver.rows(statements.heads, (json_text({event.run_id for event, _ in told}),))
    )
    stored, rows = _number(told, heads, {}, persisted_at)
    if not driver.try_many(*statements.insert.prepare(rows)):
        keys = json_text([(event.run_id, event.idempotency_key) for event, _ in told])
        found = driver.rows(statements.known, (keys,))
        known = {key: _Stored(run_seq, data.encode()) for key, run_seq, data in found}
        stored, rows = _number(told, heads, known, persisted_at)
        if rows:
            driver.many(*statements.insert.prepare(rows))
    return stored


def _number(
    told: Sequence[_Told], heads: Mapping[str, int], known: Mapping[str, _Stored], at: str
) -> tuple[list[_Stored], Rows]:
    """Give events their numbers after the heads of their runs, and return the rows of those not known yet."""
    last = dict(heads)
    stored: list[_Stored] = []
    rows: Rows = []
    for event, data in told:
        each = known.get(event.idempotency_key)
        if each is None:
            last[event.run_id] += 1
            each = _Stored(last[event.run_id], None)
            rows.append(row_values(event, data, each.run_seq, at))
        stored.append(each)
    return stored, rows


class _SqliteStatements(NamedTuple):
    heads: str
    known: str
    insert: EachRow
    insert_next: EachRow


@cache
def _sqlite_statements() -> _SqliteStatements:
    """Compile for the driver: SQLAlchemy's own way takes longer than the statements themselves."""
    run = func.json_each(bindparam("runs")).table_valued("value", name="run")
    key = func.json_each(bindparam("keys")).table_valued("value", name="key")
    of_key = [func.json_extract(key.c.value, literal_column(path)) for path in ("'$[0]'", "'$[1]'")]
    found = (run_event.c.idempotency_key, run_event.c.run_seq, run_event.c.event_data)
    heads = select(run.c.value, _head(run.c.value)).select_from(run)
    known = select(*found).join(
        key, tuple_(run_event.c.run_id, run_event.c.idempotency_key) == tuple_(*of_key)
    )
    return _SqliteStatements(
        str(heads.compile(dialect=sqlite.dialect())),
        str(known.compile(dialect=sqlite.dialect())),
        EachRow(run_event, _insert),
        EachRow(run_event, _insert_next),
    )


def _insert(values: Values) -> Insert:
    given = {name: value for name, value in values.items() if name != run_event.c.position.name}
    return insert(run_event).prefix_with(OR_FAIL).values(given)


def _insert_next(values: Values) -> Insert:
    number = _head(values[run_event.c.run_id.name]) + literal_column("1")
    return _insert({**values, run_event.c.run_seq.name: number}).returning(run_event.c.run_seq)


def _head(run_id: ColumnElement[str]) -> ColumnElement[int]:
    """Return the last number that a run was given; what is retired keeps its numbers."""
    last = (
        select(func.max(numbered)).where(of_run == run_id).scalar_subquery()
        for numbered, of_run in (
            (run_event.c.run_seq, run_event.c.run_id),
            (retired_run.c.last_seq, retired_run.c.run_id),
        )
    )
    return func.max(*(func.coalesce(each, literal_column("0")) for each in last))
