"""A selection as conditions on any table that has the columns of a key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    BindParameter,
    ColumnClause,
    ColumnElement,
    Date,
    FromClause,
    Select,
    Text,
    any_,
    bindparam,
    column,
    exists,
    func,
    select,
    tuple_,
)

from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.db.types import json_text
from sealbook.ledger.states.tables import partition_state
from sealbook.model.selection import Selection

_SETS = {"source": "source", "customers": "customer_id", "queries": "query_name"}
_FEW = {"source", "query_name"}
"""Columns of a key that have few values in any book, however many partitions it has."""


def conditions(dialect: str, table: FromClause, selection: Selection) -> list[ColumnElement[bool]]:
    """Return what must hold for the rows of a table that a selection chooses.

    Runs and statuses are those of the table where it has them, and else those of the partition's state.
    """
    return list(_conditions(dialect, table, selection))


def among(dialect: str, each: ColumnElement[Any], values: Collection[str]) -> ColumnElement[bool]:
    """Say that a column has one of any number of values: they are one parameter."""
    if dialect == "postgresql":
        array: BindParameter[Any] = bindparam(None, list(values), type_=ARRAY(Text))
        return each == any_(array)
    return each.in_(select(func.json_each(json_text(list(values))).table_valued(column("value")).c.value))


def _conditions(dialect: str, table: FromClause, selection: Selection) -> Iterator[ColumnElement[bool]]:
    if selection.keys:
        yield tuple_(*(table.c[name] for name in KEY)).in_(_keys(dialect, selection))
    for field, name in _SETS.items():
        values = getattr(selection, field)
        if values is not None:
            # A name alone is compared as such, so that the database sees that an index serves.
            yield table.c[name] == values[0] if len(values) == 1 else among(dialect, table.c[name], values)
    yield from (_known(dialect, table, name) for name in _to_seek_by(table, selection))
    if selection.since is not None:
        yield table.c.logical_date >= selection.since
    if selection.until is not None:
        yield table.c.logical_date <= selection.until
    if selection.runs is not None:
        runs = [str.__str__(run) for run in selection.runs]
        yield _of_state(table, "run_id", lambda each: among(dialect, each, runs))
    if selection.statuses is not None:
        statuses = [str.__str__(status) for status in selection.statuses]
        yield _of_state(table, "status", lambda each: among(dialect, each, statuses))


def _to_seek_by(table: FromClause, selection: Selection) -> Iterator[str]:
    """Yield the columns that are left open, before one that is not, in the order in which a table is kept.

    A customer of any source is then sought in each source, where else every row would be looked at.
    """
    order = [each.name for each in table.primary_key if each.name in KEY] or KEY
    given = {name for field, name in _SETS.items() if getattr(selection, field) is not None}
    for place, name in enumerate(order):
        if name in given:
            continue
        if name not in _FEW or given.isdisjoint(order[place:]):
            return
        yield name


def _known(dialect: str, table: FromClause, name: str) -> ColumnElement[bool]:
    """Say that a column has one of the values that it has anywhere: nothing new, but it can be sought by."""
    # A table of its own order has an index that begins otherwise; it has no source that no state has.
    seeks = next(iter(table.primary_key)).name == name
    found = select(_values(table.c[name] if seeks else partition_state.c[name]))
    if dialect == "postgresql":  # the array is found first; a join would be planned for more than a few
        return table.c[name] == any_(func.array(found.scalar_subquery()))
    return table.c[name].in_(found)


@cache
def _values(each: ColumnClause[Any]) -> CTE:
    """Return the values of a column that an index begins with, each found by one look into the index."""
    found = select(func.min(each).label(each.name)).cte(f"known_{each.name}", recursive=True)
    before = found.c[each.name]
    following = select(func.min(each)).where(each > before).scalar_subquery()
    return found.union_all(select(following).where(before.is_not(None)))


def _of_state(
    table: FromClause, name: str, condition: Callable[[ColumnElement[Any]], ColumnElement[bool]]
) -> ColumnElement[bool]:
    """Put a condition on a column of the table, or on that of the state of the same partition."""
    if name in table.c:
        return condition(table.c[name])
    of_state = "current_run_id" if name == "run_id" else name
    if table is partition_state:
        return condition(partition_state.c[of_state])
    state = partition_state.alias("chosen")
    return exists(select(state.c.status).where(same(state, table), condition(state.c[of_state])))


def _keys(dialect: str, selection: Selection) -> Select[Any]:
    """Return the keys that a selection names, as rows of one parameter."""
    rows = [
        [key.source, key.customer_id, key.query_name, key.logical_date.isoformat()] for key in selection.keys
    ]
    if dialect == "postgresql":
        arrays = [bindparam(None, list(values), type_=ARRAY(Text)) for values in zip(*rows, strict=True)]
        named = func.unnest(*arrays).table_valued(*KEY, name="named").render_derived()
        return select(*(named.c[name] for name in KEY[:3]), named.c.logical_date.cast(Date))
    row = func.json_each(json_text(rows)).table_valued(column("value"), name="named")
    return select(*(func.json_extract(row.c.value, f"$[{place}]") for place in range(len(KEY))))
