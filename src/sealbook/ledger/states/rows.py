"""Rows of partition_state inside a writer's transaction: locked and written.

On PostgreSQL every writer first locks the rows that are there, and in the end adds those that are not, both
in key order; so no two of them can wait for each other. Where another has added a row in between, the
transaction is done again, and finds it. On SQLite one transaction writes at a time, and has all locked.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Executable, select

from sealbook.ledger.db.bulk import encode_rows, given_rows, insert_missing_rows, update_rows, upsert_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.states.tables import JUDGED, partition_state
from sealbook.model import PartitionKey, PartitionState

_KEY_COLUMNS = [partition_state.c[name] for name in KEY]

_key_values = attrgetter(*KEY)


class Overtaken(Exception):
    """Another transaction added a row that this one found missing, and has now committed it."""


def lock(connection: Connection, keys: Iterable[PartitionKey]) -> dict[PartitionKey, PartitionState]:
    """Lock these keys' rows until the transaction ends, and return them; a key may have none."""
    by_values = {_key_values(key): key for key in keys}
    rows = connection.execute(_locking(connection.dialect.name), encode_rows(map(_named, by_values)))
    return {by_values[row[:4]]: PartitionState(*row) for row in map(tuple, rows)}


def write_judged(
    connection: Connection,
    judged: Mapping[PartitionKey, PartitionState],
    locked: Container[PartitionKey],
) -> None:
    """Write what verdicts change of states, to rows that are locked and to new ones; or raise Overtaken."""
    if connection.dialect.name != "postgresql":
        upsert_rows(connection, partition_state, list(judged.values()), JUDGED)
        return
    known = [state for key, state in judged.items() if key in locked]
    update_rows(connection, partition_state, known, JUDGED)
    new = sorted(state for key, state in judged.items() if key not in locked)
    if insert_missing_rows(connection, partition_state, new) < len(new):
        raise Overtaken


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
def _locking(dialect: str) -> Executable:
    asked = given_rows(dialect, _KEY_COLUMNS)
    rows = select(partition_state).join(asked, same(partition_state, asked)).order_by(*_KEY_COLUMNS)
    return rows.with_for_update(of=partition_state)
