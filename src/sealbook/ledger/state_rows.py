"""Rows of partition_state inside a writer's transaction: reserved, locked and written.

Every writer takes its rows in key order, so no two of them can wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, FromClause, and_, bindparam, literal, select
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.bulk import encode_rows, incoming, update_rows
from sealbook.ledger.tables import KEY, partition_state
from sealbook.model import PartitionKey, PartitionState, Status

_KEY_COLUMNS = [partition_state.c[name] for name in KEY]

_key_values = attrgetter(*KEY)
_state_values = attrgetter(*(column.name for column in partition_state.c))


def reserve(connection: Connection, keys: Iterable[PartitionKey], at: datetime) -> None:
    """Give every key a row, so that there is something to lock; of racing writers, the later ones wait."""
    rows = encode_rows(map(key_row, keys))
    connection.execute(_reservation(connection.dialect.name), {**rows, "at": at})


def lock(connection: Connection, keys: Iterable[PartitionKey]) -> dict[PartitionKey, PartitionState]:
    """Lock these keys' rows until the transaction ends, and return them; a key may have none."""
    rows = connection.execute(_locking(connection.dialect.name), encode_rows(map(key_row, keys)))
    return {PartitionKey(*row[:4]): PartitionState(*row) for row in rows}


def write(connection: Connection, states: Iterable[PartitionState], columns: tuple[str, ...]) -> None:
    """Write columns of states back to rows that this transaction holds."""
    update_rows(connection, partition_state, [_state_values(state) for state in states], columns)


def key_row(key: PartitionKey) -> dict[str, Any]:
    """Return the columns of a key, for a bulk statement."""
    return dict(zip(KEY, _key_values(key), strict=True))


def same(left: FromClause, right: FromClause, *columns: str) -> ColumnElement[bool]:
    """Say that two rows are of the same partition, and agree in further columns."""
    return and_(*(left.c[name] == right.c[name] for name in (*KEY, *columns)))


@cache
def _reservation(dialect: str) -> Executable:
    asked = incoming(dialect, _KEY_COLUMNS)
    key = [asked.c[name] for name in KEY]
    at = bindparam("at", type_=partition_state.c.updated_at.type)
    # `WHERE true` keeps SQLite from reading ON CONFLICT as the ON of a join.
    pending = select(*key, literal(Status.PENDING.value), at).where(literal(True)).order_by(*key)
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = insert(partition_state).from_select([*KEY, "status", "updated_at"], pending)
    return statement.on_conflict_do_nothing()


@cache
def _locking(dialect: str) -> Executable:
    asked = incoming(dialect, _KEY_COLUMNS)
    rows = select(partition_state).join(asked, same(partition_state, asked)).order_by(*_KEY_COLUMNS)
    return rows.with_for_update(of=partition_state)
