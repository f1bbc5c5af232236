"""Drift: what replacements changed, written with the swap that makes them, and summed up by age."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Integer,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    select,
    true,
)

from sealbook.ledger.db.bulk import insert_missing_rows
from sealbook.ledger.db.engine import Database
from sealbook.ledger.pointers.tables import drift
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.ledger.states.selecting import conditions
from sealbook.model import RunId
from sealbook.model.artifacts import Staged
from sealbook.model.drift import AGES, BEFORE_END, Drift, DriftSum
from sealbook.model.keys import run_prefix
from sealbook.model.run_diff import Number
from sealbook.model.selection import Selection

_HOUR = timedelta(hours=1)
_MEANWHILE = "another run was published since they were compared"


def record_drifts(connection: Connection, replaced: Iterable[tuple[Staged, RunId | None]]) -> None:
    """Write what replacements changed, each once; what replaced nothing has no drift."""
    rows = [_row(staged, staged.drift, run_id) for staged, run_id in replaced if staged.drift and run_id]
    if rows:
        insert_missing_rows(connection, drift, rows)


def _row(staged: Staged, found: Drift, replaced: RunId) -> tuple[Any, ...]:
    if found.from_run_id != replaced:
        found = Drift(replaced, found.age, problem=_MEANWHILE)
    key = staged.key
    totals = {name: [_number(each) for each in pair] for name, pair in found.totals.items()}
    return (
        *(key.source, key.customer_id, key.query_name, key.logical_date),
        *(found.from_run_id, staged.artifact.run_id, found.age // _HOUR),
        *(found.rows, found.added, found.removed, found.changed, totals or None),
        *(found.change, found.problem),
    )


def _number(number: Number | None) -> int | float | str | None:
    """Return a number as JSON keeps it; decimals as text, with all their digits."""
    return str(number) if isinstance(number, Decimal) else number


class DriftReader:
    """The port of whoever asks how much days are restated. Reading never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def drift_sums(
        self,
        selection: Selection = EVERYTHING,
        *,
        by_customer: bool = False,
        opened_before: datetime | None = None,
    ) -> list[DriftSum]:
        """Sum up what replacements changed, by query and by age, and by customer if asked to.

        Only those by runs that were `opened_before` a moment, if one is given.
        """
        dialect = self._database.dialect
        chosen = conditions(dialect, drift, selection)
        if opened_before is not None:
            chosen.append(drift.c.to_run_id < literal(run_prefix(opened_before)))
        with self._database.read() as connection:
            found = [_drift_sum(*row) for row in connection.execute(_sums(by_customer).where(*chosen))]
            columns: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
            for *group, name, total in connection.execute(_columns(dialect, by_customer).where(*chosen)):
                columns[tuple(group)][name] = total
        return [
            replace(
                each,
                columns={
                    name: total / each.compared
                    for name, total in columns[
                        each.source, each.query_name, each.customer_id, each.age // _HOUR
                    ].items()
                },
            )
            for each in found
        ]


_COUNTS = ("replacements", "compared", "unchanged", "rows", "added", "removed", "changed")


def _drift_sum(source: str, query_name: str, customer_id: str | None, hours: int, *sums: Any) -> DriftSum:
    *counts, change = sums
    counted: dict[str, Any] = {name: int(each) for name, each in zip(_COUNTS, counts, strict=True)}
    return DriftSum(source, query_name, customer_id, hours * _HOUR, **counted, change=change or 0.0)


def _ages() -> Iterator[tuple[ColumnElement[bool], ColumnElement[int]]]:
    yield drift.c.age_hours < AGES[0] // _HOUR, literal(BEFORE_END // _HOUR)
    for age, following in pairwise(AGES):
        yield drift.c.age_hours < following // _HOUR, literal(age // _HOUR)


_AGE = case(*_ages(), else_=literal(AGES[-1] // _HOUR))
_COMPARED = drift.c.problem.is_(None)
_UNCHANGED = and_(_COMPARED, drift.c.added + drift.c.removed + drift.c.changed == 0)


def _grouped(query: Select[Any], by_customer: bool) -> Select[Any]:
    groups = [drift.c.source, drift.c.query_name]
    customer = drift.c.customer_id if by_customer else null()
    groups += [drift.c.customer_id] if by_customer else []
    columns = (drift.c.source, drift.c.query_name, customer.label("customer_id"), _AGE.label("age"))
    return query.add_columns(*columns).group_by(*groups, "age").order_by(*groups, "age")


@cache
def _sums(by_customer: bool) -> Select[Any]:
    counts = [func.count(), *(func.count(case((each, 1))) for each in (_COMPARED, _UNCHANGED))]
    sums = [func.sum(drift.c[name]) for name in _COUNTS[len(counts) :]]  # 0 of what was not compared
    return _grouped(select(), by_customer).add_columns(
        *counts, *sums, func.avg(case((_COMPARED, drift.c.change)))
    )


@cache
def _columns(dialect: str, by_customer: bool) -> Select[Any]:
    """Select the sum of the relative differences of each column's total, by group."""
    each = func.json_each if dialect == "sqlite" else func.jsonb_each
    column = each(drift.c.totals).table_valued("key", "value", name="column_totals")

    def total(place: int) -> ColumnElement[float]:
        value = (
            func.json_extract(column.c.value, f"$[{place}]")
            if dialect == "sqlite"
            else column.c.value.op("->>")(literal(place, Integer))
        )
        return func.coalesce(cast(value, Double), 0.0)

    before, after = total(0), total(1)
    share = func.abs(after - before, type_=Double) / func.abs(before, type_=Double)
    part = case((before == 0, 1.0), (share > 1, 1.0), else_=share)
    query = select().select_from(drift).join(column, true())
    name = column.c.key
    grouped = _grouped(query, by_customer).add_columns(name, func.sum(part))
    return grouped.where(drift.c.totals.is_not(None)).group_by(name).order_by(name)
