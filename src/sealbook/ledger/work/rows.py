"""Rows of open work inside a writer's transaction: locked, read and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Delete, Executable, delete, select, true, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.db.bulk import encode_rows, given_rows, upsert_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.work.tables import flow_pass, work
from sealbook.model import PartitionKey, RunId
from sealbook.model.retry import Cause, Stop
from sealbook.model.shares import order_of
from sealbook.model.work import Lane, Work, WorkKind

DEFAULT_COST = 1
"""Requests that a partition costs where nobody has said: one."""

_KEY_COLUMNS = [work.c[name] for name in KEY]
_key_values = attrgetter(*KEY)


@dataclass(frozen=True, slots=True)
class OpenWork:
    """A row: the work itself, and what claims and plans have to do with it."""

    work: Work
    priority: int = 0
    cost: int = DEFAULT_COST
    plan_id: int | None = None
    paused: bool = False
    stopped_by: str | None = None
    stopped_reason: str | None = None
    stopped_at: datetime | None = None
    holder: str | None = None
    fence: int = 0
    claimed_at: datetime | None = None
    expires_at: datetime | None = None
    claim_run_id: RunId | None = None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.work.key

    def let_go(self) -> OpenWork:
        """Return it as nobody's: whoever was at it has lost it."""
        return replace(self.lapsed(), claim_run_id=None)

    def lapsed(self) -> OpenWork:
        """Return it as nobody's, with the run that its holder has left."""
        return replace(self, holder=None, claimed_at=None, expires_at=None)

    def stopped(self, at: datetime, by: str | None = None, reason: str | None = None) -> OpenWork:
        """Return it as stopped since a moment, by a policy or by somebody."""
        return replace(self, stopped_by=by, stopped_reason=reason, stopped_at=at)

    def going(self) -> OpenWork:
        """Return it as not stopped any more."""
        return replace(self, stopped_by=None, stopped_reason=None, stopped_at=None)


def read_row(row: Sequence[Any]) -> OpenWork:
    """Make what a row says."""
    (*key, lane, kind, ready_at, priority, _, cost, tries, failing_since, cause, error, contract_hash, run_id,
     plan_id, paused, stop, setup, by, reason, at, holder, fence, claimed_at, expires_at, claim_run_id,
    ) = row  # fmt: skip
    return OpenWork(
        Work(
            PartitionKey(*key),
            Lane(lane),
            WorkKind(kind),
            ready_at,
            tries,
            failing_since,
            None if cause is None else Cause(cause),
            error,
            run_id,
            contract_hash,
            None if stop is None else Stop(stop),
            setup,
        ),
        priority,
        cost,
        plan_id,
        bool(paused),
        by,
        reason,
        at,
        holder,
        fence,
        claimed_at,
        expires_at,
        claim_run_id,
    )


def row_of(each: OpenWork) -> tuple[Any, ...]:
    """Return the values of a row in the order of its columns."""
    it = each.work
    return (
        *_key_values(it.key),
        it.lane.value,
        it.kind.value,
        it.ready_at,
        each.priority,
        order_of(it.lane, it.key.logical_date, it.ready_at),
        each.cost,
        it.tries,
        it.failing_since,
        None if it.cause is None else it.cause.value,
        it.error,
        it.contract_hash,
        it.run_id,
        each.plan_id,
        each.paused,
        None if it.stop is None else it.stop.value,
        it.setup,
        each.stopped_by,
        each.stopped_reason,
        each.stopped_at,
        each.holder,
        each.fence,
        each.claimed_at,
        each.expires_at,
        each.claim_run_id,
    )


def is_any(connection: Connection) -> bool:
    """Tell whether there is any open work at all."""
    return connection.execute(_ANY).first() is not None


def lock(connection: Connection, keys: Iterable[PartitionKey]) -> dict[PartitionKey, OpenWork]:
    """Lock these partitions' rows until the transaction ends, and return them; most have none."""
    rows = connection.execute(_locking(connection.dialect.name), encode_keys(keys)).all()
    found = map(read_row, rows)
    return {each.key: each for each in found}


def write(connection: Connection, rows: Iterable[OpenWork]) -> None:
    """Write rows that are locked, or new, and see that their flows are served."""
    values = sorted(map(row_of, rows))
    if not values:
        return
    upsert_rows(connection, work, values, _CHANGING)
    add_flows(connection, {(row[4], row[0], row[1]) for row in values})


def remove(connection: Connection, keys: Iterable[PartitionKey]) -> None:
    """Remove the rows of partitions that nothing is to be done about."""
    given = encode_keys(keys)
    connection.execute(_removing(connection.dialect.name), given)


def add_flows(connection: Connection, flows: Iterable[tuple[str, str, str]]) -> None:
    """See that these flows (lane, source, customer) are served, if they are new."""
    given = encode_rows(dict(zip(_FLOW, flow, strict=True)) for flow in sorted(flows))
    connection.execute(_adding_flows(connection.dialect.name), given)


def encode_keys(keys: Iterable[PartitionKey]) -> dict[str, str]:
    """Return the parameter that has these keys as rows."""
    return encode_rows(dict(zip(KEY, _key_values(key), strict=True)) for key in keys)


_CHANGING = tuple(column.name for column in work.c if column.name not in KEY)
_FLOW = ("lane", "source", "customer_id")
_ANY = select(work.c.lane).limit(1)


@cache
def _locking(dialect: str) -> Executable:
    asked = given_rows(dialect, _KEY_COLUMNS)
    rows = select(work).join(asked, same(work, asked)).order_by(*_KEY_COLUMNS)
    return rows.with_for_update(of=work)


@cache
def _removing(dialect: str) -> Delete:
    asked = given_rows(dialect, _KEY_COLUMNS)
    return delete(work).where(tuple_(*_KEY_COLUMNS).in_(select(*(asked.c[name] for name in KEY))))


@cache
def _adding_flows(dialect: str) -> Executable:
    given = given_rows(dialect, [flow_pass.c[name] for name in _FLOW])
    # SQLite takes ON CONFLICT after a SELECT for a join's ON unless a WHERE comes between.
    new = select(*(given.c[name] for name in _FLOW)).where(true())
    adding = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(flow_pass)
    return adding.from_select(list(_FLOW), new).on_conflict_do_nothing()
