"""Which partitions want work: they are due and not there, or are due once more (R-PST-8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, not_, or_, select

from sealbook.ledger.status.asking import Asked
from sealbook.ledger.status.fetching import fetch
from sealbook.ledger.status.gaps import untouched_days
from sealbook.ledger.status.given import row
from sealbook.ledger.status.held import READABLE, Shape, hold
from sealbook.model.expectations import Expectations
from sealbook.model.freshness import Freshness
from sealbook.model.universe import Asset


class Wanting(NamedTuple):
    """Days of a series, as numbers: those that consumers get nothing of, and those that are due once more."""

    name: tuple[str, str, str]
    missing: list[int]
    again: list[int]


def at_due_points(expectations: Expectations) -> Expectations:
    """Return expectations that a day fails as soon as a due point has passed, however late it may be.

    What is made of others, and by which contract, is no reason to ask a source again.
    """
    universe = expectations.universe
    assets = {
        name: Asset(
            name,
            None if each.freshness is None else _at_once(each.freshness),
            by_class={other: _at_once(policy) for other, policy in each.by_class.items()},
        )
        for name, each in universe.assets.items()
    }
    return Expectations(replace(universe, assets=assets), expectations.now)


def _at_once(freshness: Freshness) -> Freshness:
    return replace(freshness, max_lag=timedelta())


def find_wanting(connection: Connection, asked: Asked) -> Iterator[Wanting]:
    """Yield what each series wants, if it wants anything; `asked` is `at_due_points`."""
    found: dict[int | None, Wanting] = {}
    names = {each.number: each.name for each in asked.series}
    query = _wanting(connection.dialect.name, asked.shape)
    for number, day, readable in fetch(connection, query, asked):
        wanting = found.get(number)
        if wanting is None:
            wanting = found[number] = Wanting(names[number], [], [])
        (wanting.again if readable else wanting.missing).append(day)
    for series, untouched in untouched_days(connection, asked):
        if series.number is None or series.number not in found:
            yield Wanting(series.name, untouched, [])
        else:
            found[series.number].missing.extend(untouched)
    yield from found.values()


@cache
def _wanting(dialect: str, shape: Shape) -> Select[Any]:
    held = hold(dialect, shape)
    return (
        select(row.series_id, row.day, READABLE)
        .select_from(held.rows.source)
        .where(held.rows.asked, and_(held.due, or_(not_(READABLE), held.late)))
    )
