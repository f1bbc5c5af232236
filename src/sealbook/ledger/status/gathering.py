"""Upstreams of all customers: what they add up to for each day, gathered once for all rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from sqlalchemy import Column, Connection, Integer, Select, and_, func, select

from sealbook.ledger.status.asking import Asked, Series
from sealbook.ledger.status.given import GivenTable
from sealbook.ledger.status.held import GATHERED, row
from sealbook.ledger.status.tables import partition_status
from sealbook.model.universe import Upstream

_SPANS = GivenTable("spans", [Column(name, Integer) for name in ("series_id", "first", "last")])

Span = tuple[int | None, int, int]
"""The number of a series, if it has one, and the first and last day of it that is expected."""


def gathered(connection: Connection, asked: Asked) -> dict[str, Any]:
    """Return the parameters of a statement that say what upstreams of all customers add up to."""
    rows: list[tuple[int, int, int | None, bool]] = []
    for link, (asset, upstream) in enumerate(asked.links):
        own = [each for each in asked.series if each.asset == asset and each.number is not None]
        for day, latest, unknown in _by_day(connection, own, upstream, _spans_of(asked, upstream)):
            rows.append((link, day, latest, unknown))
    return GATHERED.parameters(connection.dialect.name, rows) if asked.links else {}


def _by_day(
    connection: Connection, own: list[Series], upstream: Upstream, spans: list[Span]
) -> Iterator[tuple[int, int | None, bool]]:
    """Yield for each day of own rows the latest materialization above it, and whether one is unknown."""
    bounds = ((each.number, each.since, each.until) for each in own)
    [(first, last)] = in_spans(connection, select(func.min(row.day), func.max(row.day)), bounds)
    if first is None:
        return
    begin, end = first + upstream.first, last + upstream.last
    wanted = _wanted(spans, begin, end)
    by_day = select(row.day, func.count(row.materialized_at), func.max(row.materialized_at))
    rows = in_spans(connection, by_day.where(row.day.between(begin, end)).group_by(row.day), spans)
    found = {day: (count, latest) for day, count, latest in rows}
    for day in range(first, last + 1):
        window = range(day + upstream.first, day + upstream.last + 1)
        expected = sum(wanted[each - begin] for each in window)
        if expected:
            known = [found[each] for each in window if each in found]
            latest = max((at for _, at in known if at is not None), default=None)
            yield day, latest, expected > sum(count for count, _ in known)


class Changes:
    """When partitions that a row is made of, of all customers, changed first after it was materialized."""

    def __init__(self, connection: Connection, asked: Asked) -> None:
        self._connection = connection
        self._asked = asked
        self._times: dict[tuple[Upstream, int], list[int]] = {}

    def first_after(self, upstream: Upstream, day: int, at: int) -> int | None:
        """Return the first time after `at` at which one of a day was materialized."""
        times = self._times.get((upstream, day))
        if times is None:
            times = self._times[upstream, day] = self._find(upstream, day)
        place = bisect_right(times, at)
        return times[place] if place < len(times) else None

    def _find(self, upstream: Upstream, day: int) -> list[int]:
        spans = _spans_of(self._asked, upstream)
        within = row.day.between(day + upstream.first, day + upstream.last)
        query = select(row.materialized_at).where(within, row.materialized_at.is_not(None))
        return [at for (at,) in in_spans(self._connection, query.order_by(row.materialized_at), spans)]


def _spans_of(asked: Asked, upstream: Upstream) -> list[Span]:
    """Return which series of an upstream are expected, and for which days."""
    source, query_name = upstream.asset
    customers = asked.expectations.universe.accounts.get(source, ())
    days = ((each, asked.expected(upstream.asset, each)) for each in customers)
    return [
        (asked.ids.get((source, customer_id, query_name)), *span)
        for customer_id, span in days
        if span is not None
    ]


def _wanted(spans: Iterable[Span], begin: int, end: int) -> list[int]:
    """Return how many partitions are expected of each day, from one to another."""
    steps = [0] * (end - begin + 2)
    for _, first, last in spans:
        if first <= end and last >= begin:
            steps[max(first, begin) - begin] += 1
            steps[min(last, end) - begin + 1] -= 1
    return list(accumulate(steps))


def in_spans(connection: Connection, query: Select[Any], spans: Iterable[Span]) -> list[Any]:
    """Ask for rows of series, from a day to a day each."""
    dialect = connection.dialect.name
    span = _SPANS.table(dialect)
    within = and_(row.series_id == span.c.series_id, row.day >= span.c.first, row.day <= span.c.last)
    known = (each for each in spans if each[0] is not None)
    rows = query.select_from(span.join(partition_status, within))
    return list(connection.execute(rows, _SPANS.parameters(dialect, known)))
