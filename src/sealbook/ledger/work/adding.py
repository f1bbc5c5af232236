"""New work in bulk: rows are added where nothing is open yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection, Executable, select, true
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.types import microseconds
from sealbook.ledger.work.rows import add_flows
from sealbook.ledger.work.tables import work
from sealbook.model import RunId
from sealbook.model.shares import order_of
from sealbook.model.work import Lane, WorkKind

_ROWS_A_STATEMENT = 5_000


class NewWork(NamedTuple):
    """What is to be done about a partition that nothing is open of."""

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    lane: Lane
    kind: WorkKind
    cost: int
    run_id: RunId | None = None


def add(
    connection: Connection,
    new: Sequence[NewWork],
    ready_at: datetime,
    *,
    plan_id: int | None = None,
    priority: int = 0,
) -> int:
    """Open work that is ready from a moment on; return how much of it was not open already."""
    time = ready_at if connection.dialect.name == "postgresql" else microseconds(ready_at)
    shared = {"ready_at": time, "plan_id": plan_id, "priority": priority}
    added = 0
    for start in range(0, len(new), _ROWS_A_STATEMENT):
        rows = encode_rows(
            {
                "source": each.source,
                "customer_id": each.customer_id,
                "query_name": each.query_name,
                "logical_date": each.logical_date,
                "lane": each.lane.value,
                "kind": each.kind.value,
                "rank": order_of(each.lane, each.logical_date, ready_at),
                "cost": each.cost,
                "run_id": each.run_id,
                **shared,
            }
            for each in new[start : start + _ROWS_A_STATEMENT]
        )
        added += connection.execute(_adding(connection.dialect.name), rows).rowcount
    add_flows(connection, {(each.lane.value, each.source, each.customer_id) for each in new})
    return added


_NAMES = (
    *NewWork._fields,
    "rank",
    "ready_at",
    "plan_id",
    "priority",
)


@cache
def _adding(dialect: str) -> Executable:
    given = given_rows(dialect, [work.c[name] for name in _NAMES])
    # In key order, so that no two of them wait for each other; SQLite wants a WHERE before ON CONFLICT.
    new = select(*(given.c[name] for name in _NAMES)).where(true()).order_by(*given.c)
    adding = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(work)
    added = adding.from_select(list(_NAMES), new).on_conflict_do_nothing()
    return added.execution_options(preserve_rowcount=True)
