"""Upstreams of all customers: what they add up to for each day, gathered once for all rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, Select, func, select

from sealbook.ledger.status.asking import Asked, Series
from sealbook.ledger.status.given import NEVER, Given, Numbers, row
from sealbook.ledger.status.giving import fetch_given, rows_given
from sealbook.ledger.status.timeline import FOREVER, Stretch
from sealbook.model.universe import Upstream

_SPAN = ("series_id", "number", "profile", "first", "last")

Span = tuple[int | None, int, int]
"""The number of a series, if it has one, and the first and last day of it that is expected."""


def gather(connection: Connection, asked: Asked) -> list[Numbers]:
    """Return what upstreams of all customers add up to: by link and day, the latest, and if one lacks."""
    rows: list[Numbers] = []
    for link, (asset, upstream) in enumerate(asked.links, 1):
        own = [each for each in asked.series if each.asset == asset and each.number is not None]
        for day, latest, unknown in _by_day(connection, own, upstream, _spans_of(asked, upstream)):
            rows.append((link, day, -NEVER if latest is None else latest, int(unknown)))
    return rows


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


def in_spans(connection: Connection, query: Select[Any], spans: Iterable[Span]) -> Sequence[Any]:
    """Ask for rows of series, from a day to a day each; of one that comes again, also for all between."""
    dialect = connection.dialect.name
    rows = rows_given(dialect, _SPAN)
    bounds: dict[int, tuple[int, int]] = {}
    for number, first, last in spans:
        if number is not None:
            known = bounds.get(number, (first, last))
            bounds[number] = min(first, known[0]), max(last, known[1])
    within = (row.day >= rows.own("first"), row.day <= rows.own("last"))
    given = Given(
        columns=_SPAN,
        series=[(number, 0, 1, *span) for number, span in bounds.items()],
        profiles={(Stretch(-FOREVER, FOREVER, expected=False, due=False),): 1},
    )
    found = query.select_from(rows.source).where(rows.asked, *within)
    return fetch_given(connection, found, given)
