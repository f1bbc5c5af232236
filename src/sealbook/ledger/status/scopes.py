"""Whose runs are whose: a run belongs to the scope of the book that opened it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sqlalchemy import Connection, Executable, and_, func, select
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.events.port import Backlog
from sealbook.ledger.events.tables import run_event, run_head
from sealbook.ledger.status.tables import run_scope
from sealbook.model.scope import DEFAULT_SCOPE, Scope


def claim_runs(connection: Connection, run_ids: Iterable[str], scope: Scope) -> None:
    """Note to which scope new runs belong, in the transaction that opens them."""
    if scope == DEFAULT_SCOPE:
        return  # which needs no row
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    rows = [{"run_id": str.__str__(run_id), **scope._asdict()} for run_id in run_ids]
    connection.execute(insert(run_scope).on_conflict_do_nothing(), rows)


def runs_of(connection: Connection, run_ids: Iterable[str], scope: Scope) -> dict[str, int]:
    """Return those of some runs that are of a scope, with their numbers in the log."""
    asked = encode_rows({"run_id": run_id} for run_id in run_ids)
    found = connection.execute(_runs(connection.dialect.name), asked)
    return {
        run_id: number
        for run_id, number, tenant_id, workspace_id in found
        if scope == (DEFAULT_SCOPE if tenant_id is None else (tenant_id, workspace_id))
    }


@cache
def _runs(dialect: str) -> Executable:
    asked = given_rows(dialect, [run_head.c.run_id])
    return (
        select(run_head.c.run_id, run_head.c.number, run_scope.c.tenant_id, run_scope.c.workspace_id)
        .join(asked, asked.c.run_id == run_head.c.run_id)
        .outerjoin(run_scope, run_scope.c.run_id == run_head.c.run_id)
    )


def own_backlog(connection: Connection, after: int, scope: Scope) -> Backlog:
    """Measure what the runs of a scope have said after a position: others' work is nothing to wait for."""
    whose = run_scope.c.tenant_id
    own = (
        whose.is_(None)
        if scope == DEFAULT_SCOPE
        else and_(whose == scope.tenant_id, run_scope.c.workspace_id == scope.workspace_id)
    )
    waiting = (
        select(func.count(), func.min(run_event.c.position), func.max(run_event.c.position))
        .join(run_head, run_head.c.number == run_event.c.run_number)
        .outerjoin(run_scope, run_scope.c.run_id == run_head.c.run_id)
        .where(run_event.c.position > after, own)
    )
    events, first, last = connection.execute(waiting).one()
    if not events:
        return Backlog(0, None, after)
    oldest = select(run_event.c.persisted_at).where(run_event.c.position == first)
    return Backlog(events, connection.execute(oldest).scalar(), last)
