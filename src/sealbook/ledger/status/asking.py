"""What is asked for: which series, for which days, and what is expected of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import cached_property
from typing import NamedTuple

from sealbook.ledger.status.given import Stretches
from sealbook.ledger.status.held import Shape
from sealbook.ledger.status.tables import day_number
from sealbook.ledger.status.timeline import FOREVER, stretches
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.freshness import Freshness
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName, EarlierZone, Universe, Upstream

SeriesName = tuple[str, str, str]
"""Source, customer and query."""

SeriesIds = Mapping[SeriesName, int]
"""The number of each series that has rows."""

_MOST_CUSTOMERS = 256

Days = tuple[int, int]


class Calendar(NamedTuple):
    """What decides when a day is due, late or settled."""

    freshness: Freshness | None
    zone: tzinfo
    earlier: tuple[EarlierZone, ...] = ()


class Series(NamedTuple):
    """A customer's partitions of a query, from a day to a day; no number if none of them has a row."""

    name: SeriesName
    asset: AssetName
    calendar: Calendar | None
    number: int | None
    since: int
    until: int
    expected: Days | None
    due_until: int
    stretches: Stretches

    @property
    def due(self) -> range:
        """The days that are due and asked for."""
        first, last = self.expected or (0, -1)
        return range(max(first, self.since), min(last, self.due_until, self.until) + 1)

    @property
    def days_past_deadline(self) -> int:
        """How many of them are past a deadline."""
        return sum(
            max(0, min(each.last, self.until) - max(each.first, self.since) + 1)
            for each in self.stretches
            if each.late_before is not None
        )


class Upstreams(NamedTuple):
    """What a query is made of, by how it is looked up: of one day, of several, of all customers."""

    days: list[Upstream]
    windows: list[Upstream]
    gathered: list[Upstream]

    @classmethod
    def of(cls, upstreams: Sequence[Upstream]) -> Upstreams:
        """Sort upstreams."""
        own = [each for each in upstreams if not each.all_customers]
        return cls(
            [each for each in own if each.first == each.last],
            [each for each in own if each.first != each.last],
            [each for each in upstreams if each.all_customers],
        )


@dataclass(frozen=True)
class Asked:
    """The series that are asked for, in the order of their names, and how they are held."""

    expectations: Expectations
    series: list[Series]
    ids: SeriesIds
    validators: Mapping[int, str | None]
    """By which contract each validator judges, as far as it is known."""
    keyed: bool = False
    """Whether each series is there for one day, and perhaps again for another."""

    @cached_property
    def assets(self) -> list[AssetName]:
        """The queries, whose places here are their numbers in a statement."""
        return sorted({each.asset for each in self.series})

    @cached_property
    def upstreams(self) -> dict[AssetName, Upstreams]:
        """The upstreams of each query."""
        assets = self.expectations.universe.assets
        return {name: Upstreams.of(assets[name].upstreams if name in assets else ()) for name in self.assets}

    @property
    def shape(self) -> Shape:
        """The shape of all series."""
        kinds = zip(*self.upstreams.values(), strict=True)
        days, windows, gathered = (max(map(len, kind)) for kind in kinds) if self.series else (0, 0, 0)
        return Shape(days, windows, gathered, self.keyed)

    @property
    def links(self) -> list[tuple[AssetName, Upstream]]:
        """Every upstream of all customers, with the query that is made of it; its place is its number."""
        return [(name, each) for name in self.assets for each in self.upstreams[name].gathered]

    def parts(self) -> Iterator[Asked]:
        """Cut it by customers, into parts that grow: who needs but few lines looks at few customers."""
        owners = sorted({each.name[:2] for each in self.series})
        start, size = 0, 1
        while start < len(owners):
            chosen = {*owners[start : start + size]}
            yield replace(self, series=[each for each in self.series if each.name[:2] in chosen])
            start, size = start + size, min(2 * size, _MOST_CUSTOMERS)

    def after(self, key: PartitionKey) -> Asked:
        """Leave out customers that come before that of a key."""
        owner = key.source, key.customer_id
        return replace(self, series=[each for each in self.series if each.name[:2] >= owner])

    def expected(self, asset: AssetName, customer_id: str) -> Days | None:
        """Return the first and the last day that is expected of a customer's query."""
        universe = self.expectations.universe
        account = universe.accounts.get(asset.source, {}).get(customer_id)
        days = None if account is None or asset not in universe.assets else universe.days(asset, account)
        return None if days is None else (day_number(days[0]), day_number(days[1]))

    def number_of(self, asset: AssetName, customer_id: str) -> int | None:
        """Return the number of a customer's series of a query, if it has rows."""
        return self.ids.get(_name(asset, customer_id))


def ask(
    expectations: Expectations, selection: Selection, ids: SeriesIds, validators: Mapping[int, str | None]
) -> Asked:
    """Say which series are chosen, be they known or expected, and for which days."""
    chosen = _of_keys(selection) if selection.keys else _of_filters(selection, expectations.universe, ids)
    series = [_series(expectations, name, ids.get(name), days) for name, days in chosen]
    return Asked(expectations, series, ids, validators, keyed=bool(selection.keys))


def _of_keys(selection: Selection) -> Iterator[tuple[SeriesName, Days]]:
    for key in sorted(selection.keys):
        day = day_number(key.logical_date)
        yield (key.source, key.customer_id, key.query_name), (day, day)


def _of_filters(
    selection: Selection, universe: Universe, ids: SeriesIds
) -> Iterator[tuple[SeriesName, Days]]:
    since = -FOREVER if selection.since is None else day_number(selection.since)
    until = FOREVER if selection.until is None else day_number(selection.until)
    customers = None if selection.customers is None else {*selection.customers}
    expected = (
        _name(asset, customer_id)
        for asset in universe.assets
        for customer_id in universe.accounts.get(asset.source, ())
    )
    chosen = (
        (source, customer_id, query_name)
        for source, customer_id, query_name in {*ids, *expected}
        if (customers is None or customer_id in customers) and selection.has_query(source, query_name)
    )
    for name in sorted(chosen):
        yield name, (since, until)


def _series(expectations: Expectations, name: SeriesName, number: int | None, days: Days) -> Series:
    universe = expectations.universe
    source, customer_id, query_name = name
    asset_name = AssetName(source, query_name)
    asset = universe.assets.get(asset_name)
    account = None if asset is None else universe.accounts.get(source, {}).get(customer_id)
    span = None if account is None else universe.days(asset_name, account)
    if asset is None or account is None or span is None:
        parts = stretches(None, UTC, (), None, expectations.now)
        return Series(name, asset_name, None, number, *days, None, -FOREVER, parts)
    calendar = Calendar(asset.freshness_of(account), account.zone, account.earlier)
    parts = stretches(*calendar, span, expectations.now)
    due_until = max((each.last for each in parts if each.due), default=-FOREVER)
    expected = day_number(span[0]), day_number(span[1])
    return Series(name, asset_name, calendar, number, *days, expected, due_until, parts)


def _name(asset: AssetName, customer_id: str) -> SeriesName:
    return asset.source, customer_id, asset.query_name
