"""Whose runs are whose: a run belongs to the scope of the book that opened it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sqlalchemy import Connection, Executable, select
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.events.tables import run_head
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
