"""Rows of partition_state inside a writer's transaction: locked and written.

On PostgreSQL every writer takes its rows in key order, so no two of them can wait for each other. On SQLite
one transaction writes at a time, and has everything locked.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Executable, bindparam, literal, select
from sqlalchemy.dialects import postgresql

from sealbook.ledger.db.bulk import encode_rows, given_rows, update_rows, upsert_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.states.tables import JUDGED, partition_state
from sealbook.model import PartitionKey, PartitionState, Status

_KEY_COLUMNS = [partition_state.c[name] for name in KEY]

_key_values = attrgetter(*KEY)


def lock_all(
    connection: Connection, keys: Iterable[PartitionKey], at: datetime
) -> dict[PartitionKey, PartitionState]:
    """Return the state of every key, pending where there was no row, and let nobody else change them."""
    wanted = list(keys)
    if connection.dialect.name == "postgresql":
        # Every key gets a row, so that there is something to lock; of racing writers, the later ones wait.
        connection.execute(_reservation(), {**encode_rows(map(key_row, wanted)), "at": at})
    states = {key: PartitionState.pending(key) for key in wanted}
    states.update(lock(connection, wanted))
    return states


def lock(connection: Connection, keys: Iterable[PartitionKey]) -> dict[PartitionKey, PartitionState]:
    """Lock these keys' rows until the transaction ends, and return them; a key may have none."""
    by_values = {_key_values(key): key for key in keys}
    rows = connection.execute(_locking(connection.dialect.name), encode_rows(map(_named, by_values)))
    return {by_values[row[:4]]: PartitionState(*row) for row in map(tuple, rows)}


def write_judged(connection: Connection, states: Iterable[PartitionState]) -> None:
    """Write what verdicts change of states that this transaction has locked."""
    write = update_rows if connection.dialect.name == "postgresql" else upsert_rows
    write(connection, partition_state, list(states), JUDGED)


def write(connection: Connection, states: Iterable[PartitionState], columns: tuple[str, ...]) -> None:
    """Write columns of states back to rows that this transaction has locked."""
    update_rows(connection, partition_state, list(states), columns)


def not_before(at: datetime, states: Iterable[PartitionState]) -> datetime:
    """Return a time, or the latest that one of some states has: theirs never go backwards (R-STATE-11)."""
    return max([at, *(state.updated_at for state in states if state.updated_at is not None)])


def key_row(key: PartitionKey) -> dict[str, Any]:
    """Return the columns of a key, for a bulk statement."""
    return _named(_key_values(key))


def _named(values: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(KEY, values, strict=True))


@cache
def _reservation() -> Executable:
    asked = given_rows("postgresql", _KEY_COLUMNS)
    key = [asked.c[name] for name in KEY]
    at = bindparam("at", type_=partition_state.c.updated_at.type)
    pending = select(*key, literal(Status.PENDING.value), at).order_by(*key)
    statement = postgresql.insert(partition_state).from_select([*KEY, "status", "updated_at"], pending)
    return statement.on_conflict_do_nothing()


@cache
def _locking(dialect: str) -> Executable:
    asked = given_rows(dialect, _KEY_COLUMNS)
    rows = select(partition_state).join(asked, same(partition_state, asked)).order_by(*_KEY_COLUMNS)
    return rows.with_for_update(of=partition_state)
