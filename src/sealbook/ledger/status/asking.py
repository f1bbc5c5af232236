"""What is asked for: which series, for which days, and what is expected of them, as rows for a statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, NamedTuple

from sealbook.ledger.status.held import STRETCHES, Shape, series_table
from sealbook.ledger.status.tables import day_number
from sealbook.ledger.status.timeline import FOREVER, Stretch, stretches
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.selection import Selection
from sealbook.model.universe import Asset, AssetName, Upstream

SeriesName = tuple[str, str, str]
"""Source, customer and query."""

SeriesIds = Mapping[SeriesName, int]
"""The number of each series that has rows."""

_NO_SERIES = -1
_MOST_CUSTOMERS = 256

Days = tuple[int, int]


class Series(NamedTuple):
    """A customer's partitions of a query, from a day to a day; no number if none of them has a row."""

    name: SeriesName
    number: int | None
    since: int
    until: int
    expected: Days | None
    due_until: int
    stretches: tuple[Stretch, ...]

    @property
    def asset(self) -> AssetName:
        """The query."""
        return AssetName(self.name[0], self.name[2])

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


@dataclass(frozen=True)
class Asked:
    """The series that are asked for, in the order of their names, and how they are held."""

    expectations: Expectations
    series: list[Series]
    ids: SeriesIds
    validators: Mapping[str, int]
    """Of each contract, a validator that judges by it."""

    @property
    def assets(self) -> list[AssetName]:
        """The queries, whose places here are their numbers in a statement."""
        return sorted({each.asset for each in self.series})

    @property
    def shape(self) -> Shape:
        """The shape of all series."""
        ups = [_sorted(self._asset(name).upstreams) for name in self.assets]
        return Shape(*(max((len(each[kind]) for each in ups), default=0) for kind in range(3)))

    @property
    def links(self) -> list[tuple[AssetName, Upstream]]:
        """Every upstream of all customers, with the query that is made of it; its place is its number."""
        return [(name, each) for name in self.assets for each in _sorted(self._asset(name).upstreams)[2]]

    def parameters(self, dialect: str) -> dict[str, Any]:
        """Return the parameters of a statement that is made of `hold`, but for what is gathered."""
        shape, links = self.shape, {link: place for place, link in enumerate(self.links)}
        assets = {name: place for place, name in enumerate(self.assets)}
        profiles: dict[tuple[Stretch, ...], int] = {}
        rows = []
        for each in self.series:
            if each.number is not None:
                profile = profiles.setdefault(each.stretches, len(profiles))
                rows.append(self._row(each, assets[each.asset], profile, shape, links))
        return series_table(shape).parameters(dialect, rows) | STRETCHES.parameters(
            dialect, _days(dialect, profiles)
        )

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

    def _row(
        self,
        each: Series,
        asset: int,
        profile: int,
        shape: Shape,
        links: Mapping[tuple[AssetName, Upstream], int],
    ) -> tuple[Any, ...]:
        code = self.expectations.in_force.get(each.asset)
        first, last = each.expected or (FOREVER, -FOREVER)
        digest = None if code is None else code.contract_hash
        days, windows, gathered = _sorted(self._asset(each.asset).upstreams)
        above = [
            self._above(each, one) + ((one.first,) if one else (None,)) for one in _padded(days, shape.days)
        ]
        window = [
            self._above(each, one) + ((one.first, one.last) if one else (None, None))
            for one in _padded(windows, shape.windows)
        ]
        linked = [
            None if one is None else links[each.asset, one] for one in _padded(gathered, shape.gathered)
        ]
        return (
            *(each.number, asset, profile, each.since, each.until, first, last, each.due_until),
            *(None if digest is None else self.validators.get(digest), digest),
            *(value for place in above for value in place),
            *(value for place in window for value in place),
            *linked,
        )

    def _above(self, each: Series, upstream: Upstream | None) -> tuple[int | None, ...]:
        """Return where the upstream of a series lies, and how far it is expected, if it is at all."""
        _, customer_id, _ = each.name
        days = None if upstream is None else self.expected(upstream.asset, customer_id)
        if upstream is None or days is None:
            return (None, None, None)
        return self.ids.get(_name(upstream.asset, customer_id), _NO_SERIES), *days

    def _asset(self, name: AssetName) -> Asset:
        return self.expectations.universe.assets.get(name) or Asset(name)


def ask(
    expectations: Expectations, selection: Selection, ids: SeriesIds, validators: Mapping[str, int]
) -> Asked:
    """Say which series are chosen, be they known or expected, and for which days."""
    universe = expectations.universe
    expected = (
        _name(asset, customer_id)
        for asset in universe.assets
        for customer_id in universe.accounts.get(asset.source, ())
    )
    names = {*ids, *expected}
    chosen = _of_keys(selection) if selection.keys else _of_filters(selection, names)
    series = [_series(expectations, name, ids.get(name), days) for name, days in chosen]
    return Asked(expectations, series, ids, validators)


def _of_keys(selection: Selection) -> Iterator[tuple[SeriesName, Days]]:
    for key in sorted(selection.keys):
        day = day_number(key.logical_date)
        yield (key.source, key.customer_id, key.query_name), (day, day)


def _of_filters(selection: Selection, names: set[SeriesName]) -> Iterator[tuple[SeriesName, Days]]:
    since = -FOREVER if selection.since is None else day_number(selection.since)
    until = FOREVER if selection.until is None else day_number(selection.until)
    for name in sorted(names):
        source, customer_id, query_name = name
        if selection.has_query(source, query_name) and (
            selection.customers is None or customer_id in selection.customers
        ):
            yield name, (since, until)


def _series(expectations: Expectations, name: SeriesName, number: int | None, days: Days) -> Series:
    universe = expectations.universe
    source, customer_id, query_name = name
    asset = universe.assets.get(AssetName(source, query_name))
    account = None if asset is None else universe.accounts.get(source, {}).get(customer_id)
    span = None if asset is None or account is None else universe.days(asset.name, account)
    if asset is None or account is None or span is None:
        return Series(name, number, *days, None, -FOREVER, stretches(None, UTC, None, expectations.now))
    parts = stretches(asset.freshness, account.zone, span, expectations.now)
    due_until = max((each.last for each in parts if each.due), default=-FOREVER)
    expected = day_number(span[0]), day_number(span[1])
    return Series(name, number, *days, expected, due_until, parts)


def _days(
    dialect: str, profiles: Mapping[tuple[Stretch, ...], int]
) -> Iterator[tuple[int, int, int, int | None, int | None]]:
    for parts, profile in profiles.items():
        for each in parts:
            if dialect != "postgresql":
                yield profile, each.first, each.last, each.late_before, each.settled_from
            elif each.due:
                for day in range(each.first, each.last + 1):
                    yield profile, day, day, each.late_before, each.settled_from


def _sorted(upstreams: tuple[Upstream, ...]) -> tuple[list[Upstream], list[Upstream], list[Upstream]]:
    """Return upstreams by how they are looked up: of one day, of several, of all customers."""
    own = [each for each in upstreams if not each.all_customers]
    return (
        [each for each in own if each.first == each.last],
        [each for each in own if each.first != each.last],
        [each for each in upstreams if each.all_customers],
    )


def _padded(upstreams: list[Upstream], length: int) -> list[Upstream | None]:
    return [*upstreams, *([None] * (length - len(upstreams)))]


def _name(asset: AssetName, customer_id: str) -> SeriesName:
    return asset.source, customer_id, asset.query_name
