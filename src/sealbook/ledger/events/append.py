"""The append authority: it numbers a run's events in the order of their commits (R-EVT-2, R-EVT-4).

On PostgreSQL it is a function in the database: an append is one round trip, and nobody gets round it. On
SQLite, where only one can write at a time, it is the transaction itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, bindparam, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from sealbook.errors import Conflict
from sealbook.ledger.db.bulk import encode_rows, given_rows, insert_rows, update_rows
from sealbook.ledger.db.types import json_text
from sealbook.ledger.events.port import AppendResult
from sealbook.ledger.events.rows import event_key, packed_data, stored_values
from sealbook.ledger.events.tables import run_event, run_head
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
    order: Sequence[int] = sorted(range(len(events)), key=lambda index: events[index].run_id)
    if not _keeps_partitions_in_order(events, order):
        lock_runs(connection, {event.run_id for event in events})
        order = range(len(events))
    given = [_members(events[index], at) for index in order]
    results: dict[int, AppendResult] = {}
    for index, row in zip(order, connection.execute(_APPEND, {"events": json_text(given)}), strict=True):
        run_seq, persisted, conflict = row
        results[index] = AppendResult(run_seq, not persisted, persisted, conflict)
    return [results[index] for index in range(len(events))]


def _keeps_partitions_in_order(events: Sequence[RunEvent], order: Iterable[int]) -> bool:
    """Say whether the log will have the facts of each partition as they were given, if appended like that.

    By runs is the quick way, but an older run may have been judged after a newer one.
    """
    latest: dict[str, int] = {}
    for index in order:
        partition = events[index].partition
        if partition is not None:
            if latest.get(partition, index) > index:
                return False
            latest[partition] = index
    return True


def _members(event: RunEvent, at: datetime) -> dict[str, Any]:
    """Return what the function of the database takes: JSON, with bytes as PostgreSQL writes them."""
    values = stored_values(event, event.derived, packed_data(event), at)
    return {
        "run_id": event.run_id,
        **values,
        "event_key": values["event_key"].hex(),
        "event_data": _bytea(values["event_data"]),
        "rest": None if values["rest"] is None else _bytea(values["rest"]),
    }


def _bytea(data: bytes) -> str:
    return "\\x" + data.hex()


class _Stored(NamedTuple):
    """The number of a stored event, and its payload."""

    run_seq: int
    event_data: bytes
    partition: str | None


def _append_on_sqlite(connection: Connection, events: Sequence[RunEvent], at: datetime) -> list[AppendResult]:
    heads = _heads(connection, {event.run_id for event in events})
    identities = [event.derived for event in events]
    known = _known(connection, [event_key(each) for each in identities])
    results: list[AppendResult] = []
    new: list[tuple[Any, ...]] = []
    for event, derived in zip(events, identities, strict=True):
        key = event_key(derived)
        data = packed_data(event)
        stored = known.get(key)
        if stored is None:
            head = heads[event.run_id]
            head.last_seq += 1
            known[key] = _Stored(head.last_seq, data, event.partition)
            values = stored_values(event, derived, data, at)
            values |= {"position": None, "run_number": head.number, "run_seq": head.last_seq}
            new.append(_in_order(values))
            results.append(AppendResult(head.last_seq, idempotent=False, persisted=True))
        else:
            conflict = stored[1:] != (data, event.partition)
            results.append(AppendResult(stored.run_seq, idempotent=True, persisted=False, conflict=conflict))
    if new:
        insert_rows(connection, run_event, new)
        advanced = [(head.number, run_id, head.last_seq) for run_id, head in heads.items()]
        update_rows(connection, run_head, advanced, ("last_seq",))
    return results


_in_order = itemgetter(*run_event.c.keys())


@dataclass(slots=True)
class _Head:
    """A run's number in the log, and the last number that an event of it has."""

    number: int
    last_seq: int


def _heads(connection: Connection, run_ids: Collection[str]) -> dict[str, _Head]:
    """Return the heads of runs; a run that had none has one from now on."""
    given = encode_rows({"run_id": run_id} for run_id in run_ids)
    heads = {row[0]: _Head(*row[1:]) for row in connection.execute(_HEADS, given)}
    if len(heads) < len(run_ids):
        insert_rows(connection, run_head, [(None, run_id, 0) for run_id in run_ids if run_id not in heads])
        heads = {row[0]: _Head(*row[1:]) for row in connection.execute(_HEADS, given)}
    return heads


def _known(connection: Connection, keys: Sequence[bytes]) -> dict[bytes, _Stored]:
    """Return the events whose keys are stored already."""
    found: dict[bytes, _Stored] = {}
    for start in range(0, len(keys), _KEYS_A_STATEMENT):
        page = keys[start : start + _KEYS_A_STATEMENT]
        found |= {row[0]: _Stored(*row[1:]) for row in connection.execute(_KNOWN, {"keys": page})}
    return found


_KEYS_A_STATEMENT = 5_000  # SQLite takes 32,766 parameters

_GIVEN = given_rows("sqlite", [run_head.c.run_id])
_HEADS = select(run_head.c.run_id, run_head.c.number, run_head.c.last_seq).join(
    _GIVEN, _GIVEN.c.run_id == run_head.c.run_id
)
_KNOWN = select(
    run_event.c.event_key, run_event.c.run_seq, run_event.c.event_data, run_event.c.partition
).where(run_event.c.event_key.in_(bindparam("keys", expanding=True)))
