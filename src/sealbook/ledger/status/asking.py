"""What is asked of one query's partitions: its series, their days, and the parameters of the statements."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from itertools import chain

from sealbook.ledger.db.bulk import encode_rows
from sealbook.ledger.status.held import upstream_names
from sealbook.ledger.status.tables import day_number
from sealbook.ledger.status.timeline import Stretch, stretches
from sealbook.model.expectations import Expectations
from sealbook.model.selection import Selection
from sealbook.model.staleness import CodeInForce
from sealbook.model.universe import Asset, AssetName, Upstream

SeriesIds = Mapping[tuple[str, str, str], int]
"""The number of each series that has rows, by source, customer and query."""

_NO_SERIES = -1

Stretches = tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """A customer's partitions of a query that are asked for; no number if none of them has a row."""

    customer_id: str
    number: int | None
    stretches: Stretches

    def due_days(self) -> Iterator[int]:
        """Yield the days that are due."""
        for each in self.stretches:
            if each.due:
                yield from range(each.first, each.last + 1)

    @property
    def due(self) -> int:
        """How many days are due."""
        return sum(each.last - each.first + 1 for each in self.stretches if each.due)


@dataclass(frozen=True, slots=True)
class Asking:
    """The series of one query that are asked for, in the order of customers."""

    asset: Asset
    series: list[Series]
    code: CodeInForce | None
    _expectations: Expectations = field(repr=False)
    _ids: SeriesIds = field(repr=False)

    @property
    def gathers(self) -> bool:
        """Whether partitions are made of those of all customers."""
        return any(upstream.all_customers for upstream in self.asset.upstreams)

    def parameters(self, latest: int) -> dict[str, str]:
        """Return the parameters of a statement that is made of `hold`; no row is of a day after `latest`."""
        code = {} if self.code is None else {"code": self.code.contract_hash}
        return self.places() | code | self._gathered(latest)

    def places(self) -> dict[str, str]:
        """Return the parameters that say where in the table rows are asked for."""
        profiles: dict[Stretches, int] = {}
        rows = []
        for each in self.series:
            if each.number is not None:
                profile = profiles.setdefault(each.stretches, len(profiles))
                row = {"series_id": each.number, "profile": profile}
                rows.append(row | self._above(each.customer_id))
        cut = (
            {"profile": profile, **stretch._asdict()}
            for parts, profile in profiles.items()
            for stretch in parts
        )
        return encode_rows(rows, "series") | encode_rows(cut, "stretches")

    def of(self, owners: Container[tuple[str, str]]) -> Asking:
        """Return what of it concerns some sources' customers."""
        source = self.asset.name.source
        return replace(self, series=[each for each in self.series if (source, each.customer_id) in owners])

    def _above(self, customer_id: str) -> dict[str, int]:
        """Return where the partitions lie that those of a customer are made of."""
        found: dict[str, int] = {}
        for place, upstream in enumerate(self.asset.upstreams):
            days = None if upstream.all_customers else self._days(upstream.asset, customer_id)
            if days is not None:
                number = self._ids.get(_name(upstream.asset, customer_id), _NO_SERIES)
                found |= dict(zip(upstream_names(place), (number, *days), strict=True))
        return found

    def _gathered(self, latest: int) -> dict[str, str]:
        """Return what upstreams of all customers need: their series, and how many are wanted for a day."""
        found: dict[str, str] = {}
        for place, upstream in enumerate(self.asset.upstreams):
            if upstream.all_customers:
                found |= encode_rows(self._series_of_all(upstream), f"gathered_{place}")
                found |= encode_rows(self._wanted(upstream, latest), f"wanted_{place}")
        return found

    def _series_of_all(self, upstream: Upstream) -> Iterator[dict[str, int]]:
        for customer_id in self._expectations.universe.accounts.get(upstream.asset.source, ()):
            days = self._days(upstream.asset, customer_id)
            number = self._ids.get(_name(upstream.asset, customer_id))
            if days is not None and number is not None:
                for distance in range(upstream.first, upstream.last + 1):
                    place = {"series_id": number, "distance": distance}
                    yield place | {"first": days[0], "last": days[1]}

    def _wanted(self, upstream: Upstream, latest: int) -> Iterator[dict[str, int]]:
        """Yield for each day of a row how many partitions there should be of what it is made of."""
        spans = [
            days
            for customer_id in self._expectations.universe.accounts.get(upstream.asset.source, ())
            if (days := self._days(upstream.asset, customer_id)) is not None
        ]
        for day in self._expected_days(latest):
            begin, end = day + upstream.first, day + upstream.last
            wanted = sum(max(0, min(end, last) - max(begin, first) + 1) for first, last in spans)
            if wanted:
                yield {"day": day, "count": wanted}

    def _expected_days(self, latest: int) -> Iterable[int]:
        parts = {each.stretches for each in self.series if each.number is not None}
        days = (
            range(each.first, min(each.last, latest) + 1)
            for each in chain.from_iterable(parts)
            if each.expected
        )
        return sorted(set(chain.from_iterable(days)))

    def _days(self, asset: AssetName, customer_id: str) -> tuple[int, int] | None:
        universe = self._expectations.universe
        account = universe.accounts.get(asset.source, {}).get(customer_id)
        if account is None or asset not in universe.assets:
            return None
        days = universe.days(asset, account)
        return None if days is None else (day_number(days[0]), day_number(days[1]))


def ask(expectations: Expectations, selection: Selection, ids: SeriesIds) -> Iterator[Asking]:
    """Yield what is asked of each query, in the order of their names."""
    universe = expectations.universe
    known = {AssetName(source, query) for source, _, query in ids}
    for name in sorted({*universe.assets, *known}):
        if selection.has_query(*name):
            customers = {customer for source, customer, query in ids if (source, query) == name}
            if name in universe.assets:
                customers |= universe.accounts.get(name.source, {}).keys()
            asset = universe.assets.get(name) or Asset(name)
            found = (_series(expectations, selection, asset, each, ids) for each in sorted(customers))
            series = [each for each in found if each.stretches]
            if series:
                yield Asking(asset, series, expectations.in_force.get(name), expectations, ids)


def _series(
    expectations: Expectations, selection: Selection, asset: Asset, customer_id: str, ids: SeriesIds
) -> Series:
    universe = expectations.universe
    account = universe.accounts.get(asset.name.source, {}).get(customer_id)
    if account is None or asset.name not in universe.assets:
        parts = stretches(None, UTC, None, expectations.now)
    else:
        days = universe.days(asset.name, account)
        parts = stretches(asset.freshness, account.zone, days, expectations.now)
    chosen = tuple(_chosen(parts, selection, asset.name, customer_id))
    return Series(customer_id, ids.get(_name(asset.name, customer_id)), chosen)


def _chosen(parts: Stretches, selection: Selection, asset: AssetName, customer_id: str) -> Iterator[Stretch]:
    """Yield what a selection leaves of stretches."""
    if selection.keys:
        own = sorted(
            day_number(key.logical_date)
            for key in selection.keys
            if (key.source, key.customer_id, key.query_name) == _name(asset, customer_id)
        )
        for day in own:
            yield from _clipped(parts, day, day)
    elif selection.customers is None or customer_id in selection.customers:
        first = None if selection.since is None else day_number(selection.since)
        last = None if selection.until is None else day_number(selection.until)
        yield from parts if first is last is None else _clipped(parts, first, last)


def _clipped(parts: Stretches, first: int | None, last: int | None) -> Iterator[Stretch]:
    for each in parts:
        begin = each.first if first is None else max(each.first, first)
        end = each.last if last is None else min(each.last, last)
        if begin <= end:
            yield each._replace(first=begin, last=end)


def _name(asset: AssetName, customer_id: str) -> tuple[str, str, str]:
    return asset.source, customer_id, asset.query_name
