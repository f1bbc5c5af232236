"""The queries of a book as the sources of a dbt project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from sealbook.config import SourceSettings
from sealbook.model.contract import Query
from sealbook.model.freshness import Freshness
from sealbook.read.schema import KEY_TYPES, reconcilable

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)


def dbt_sources(chosen: Iterable[tuple[SourceSettings, Query]]) -> dict[str, Any]:
    """Return a document of dbt: a source for each of ours, with a table for each query, and its freshness."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for settings, query in chosen:
        tables.setdefault(settings.name, []).append(_table(query, query.freshness or settings.freshness))
    return {"version": 2, "sources": [{"name": name, "tables": own} for name, own in tables.items()]}


def _table(query: Query, freshness: Freshness | None) -> dict[str, Any]:
    config: dict[str, Any] = {
        "loaded_at_query": "select published_at from sealbook.freshness"
        f" where source = '{query.source}' and query_name = '{query.name}'",
        "freshness": None if freshness is None else _expected(freshness),
    }
    return {"name": query.name, "config": config, "columns": list(_columns(query))}


def _expected(freshness: Freshness) -> dict[str, Any]:
    """Return when something is late: a day is published each day, and may lag as much as its policy says."""
    late = _DAY + freshness.max_lag
    return {"warn_after": _hours(late), "error_after": _hours(late + _DAY)}


def _hours(span: timedelta) -> dict[str, Any]:
    return {"count": -(-span // _HOUR), "period": "hour"}


def _columns(query: Query) -> Iterator[dict[str, str]]:
    for name, kind in reconcilable(query).items():
        column = {"name": name, "data_type": str(kind)}
        if name in KEY_TYPES:
            column["description"] = "of the partition"
        yield column
