"""Holds: after a rollback, the runs that do not take authority by themselves any more (R-STATE-9)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sqlalchemy import Connection, Executable, Select, func, select

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.states import rows as state_rows
from sealbook.ledger.states.tables import rollback
from sealbook.model import PartitionKey, RunId

_KEY_COLUMNS = [rollback.c[name] for name in KEY]

HOLDS: Select[tuple[object, ...]] = select(
    *_KEY_COLUMNS, func.max(rollback.c.newest_run_id).label("newest_run_id")
).group_by(*_KEY_COLUMNS)
"""Of each partition that was ever rolled back, the newest run that it had then."""


def read_holds(connection: Connection, keys: Iterable[PartitionKey]) -> dict[PartitionKey, RunId]:
    """Return the holds of those partitions that have one."""
    asked = encode_rows(map(state_rows.key_row, keys))
    found = connection.execute(_holds_of(connection.dialect.name), asked)
    return {PartitionKey(*row[:4]): RunId(row.newest_run_id) for row in found}


@cache
def _holds_of(dialect: str) -> Executable:
    asked = given_rows(dialect, _KEY_COLUMNS)
    return HOLDS.join(asked, same(rollback, asked))
