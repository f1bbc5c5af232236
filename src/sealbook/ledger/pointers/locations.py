"""Where artifacts lie: a load record spells only a location that does not follow from the artifact.

The layout is that of the warehouse (R-WH-6). Were it ever another, new records would spell their locations,
and those that do not would go on to mean this one: so what is here never changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Text, func
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from sealbook.ledger.pointers.tables import load_record


class _DayText(FunctionElement[str]):
    """A day as 2026-01-31, which is how SQLite stores it."""

    type = Text()
    inherit_cache = True


@compiles(_DayText, "sqlite")
def _as_it_is(element: _DayText, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(_DayText, "postgresql")
def _formatted(element: _DayText, compiler: SQLCompiler, **options: Any) -> str:
    return f"to_char({compiler.process(element.clauses, **options)}, 'YYYY-MM-DD')"


def files_run(filed: FromClause) -> ColumnElement[Any]:
    """Return the run whose files hold an artifact: its own, unless it shares those of another."""
    return func.coalesce(filed.c.files_run_id, filed.c.run_id)


def _by_layout(artifact: FromClause) -> ColumnElement[str]:
    """Return the location of an artifact by the layout; null where there is no artifact."""
    columns = artifact.c
    return (
        columns.source
        + "/"
        + columns.query_name
        + "/schema_version="
        + columns.schema_version
        + "/customer_id="
        + columns.customer_id
        + "/logical_date="
        + _DayText(columns.logical_date)
        + "/run_id="
        + files_run(artifact)
    )


def spelt(artifact: FromClause) -> ColumnElement[str | None]:
    """Return what a load record has as the location of a staged artifact: null where it follows."""
    return func.nullif(artifact.c.location, _by_layout(artifact))


def loaded(names: Iterable[str]) -> list[ColumnElement[Any]]:
    """Return what load records say, by the names of columns, with the location in full."""
    location = func.coalesce(load_record.c.location, _by_layout(load_record)).label("location")
    return [location if name == "location" else load_record.c[name] for name in names]
