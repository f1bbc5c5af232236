"""How each database is given what a statement is to know: PostgreSQL as arrays, SQLite as tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Executable

from sealbook.ledger.status.given import Given, GivenRows
from sealbook.ledger.status.given_arrays import arrays_of, plan_for_arrays, rows_of_arrays
from sealbook.ledger.status.given_tables import rows_of_tables, tables_of


@cache
def rows_given(dialect: str, columns: tuple[str, ...], links: int = 0, *, keyed: bool = False) -> GivenRows:
    """Return the rows of given series, with so many links each; `keyed` ones are named one by one."""
    if dialect == "postgresql":
        return rows_of_arrays(links, keyed=keyed)
    return rows_of_tables(columns, links, keyed=keyed)


def fetch_given(connection: Connection, statement: Executable, given: Given) -> Sequence[Any]:
    """Return what a statement of `rows_given` finds, given this."""
    if connection.dialect.name == "postgresql":
        plan_for_arrays(connection)
        return connection.execute(statement, arrays_of(given)).all()
    return connection.execute(statement, tables_of(given)).all()
