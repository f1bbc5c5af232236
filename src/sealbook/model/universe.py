"""Which partitions there should be, and from when on: one definition for every layer (R-PST-6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.freshness import Freshness, day_end, last_ended
from sealbook.model.keys import PartitionKey
from sealbook.model.selection import Keyed, Selection, key_of

_NO_END = date(9998, 12, 31)
"""The last day of an account that names none: its end is still a moment that Python knows."""


@dataclass(frozen=True, slots=True)
class Account:
    """A customer of a source: the time zone of its days, and which days it has."""

    customer_id: str
    zone: tzinfo = UTC
    first_day: date | None = None
    last_day: date | None = None

    def __post_init__(self) -> None:
        if self.first_day is not None and self.last_day is not None and self.first_day > self.last_day:
            raise InvalidInput(
                f"the days of customer {self.customer_id} end before they begin:"
                f" first_day {self.first_day}, last_day {self.last_day}",
                field="first_day",
                value=self.first_day,
                remedy="Correct one of the two.",
            )


class AssetName(NamedTuple):
    """What all partitions of a query belong to; its text form is the `asset_key` (R-PST-1)."""

    source: str
    query_name: str

    def __str__(self) -> str:
        return f"{self.source}/{self.query_name}"


@dataclass(frozen=True, slots=True)
class Upstream:
    """Partitions that those of another asset are made of.

    They are those of the days from `first` to `last`, counted from the day itself (-1 is the day before), of
    the same customer, or of `all_customers`.
    """

    asset: AssetName
    first: int = 0
    last: int = 0
    all_customers: bool = False

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise InvalidInput.of("days", [self.first, self.last], "the first day, then the last one")


@dataclass(frozen=True, slots=True)
class Asset:
    """A query, by what is expected of its partitions."""

    name: AssetName
    freshness: Freshness | None = None
    upstreams: tuple[Upstream, ...] = ()


class Span(NamedTuple):
    """Consecutive days of one customer and query, both ends included."""

    source: str
    customer_id: str
    query_name: str
    first: date
    last: date

    @property
    def days(self) -> int:
        """How many days."""
        return (self.last - self.first).days + 1


@dataclass(frozen=True)
class Universe:
    """Every partition that there should be: configured customers, queries and days.

    An account's days begin with its own first day or, where it names none, with the first day that the
    ledger knows of the query; before anything is known, nothing is expected.
    """

    assets: Mapping[AssetName, Asset]
    accounts: Mapping[str, Mapping[str, Account]]
    """By source, then by customer."""
    first_known: Mapping[AssetName, date] = field(default_factory=dict)

    def days(self, asset: AssetName, account: Account) -> tuple[date, date] | None:
        """Return the first and the last day that an account has of a query, due or not."""
        first = account.first_day or self.first_known.get(asset)
        last = account.last_day or _NO_END
        return None if first is None or first > last else (first, last)

    def due_days(self, asset: AssetName, account: Account, now: datetime) -> tuple[date, date] | None:
        """Return the first and the last day of a query that is due by now."""
        days = self.days(asset, account)
        if days is None:
            return None
        last = min(days[1], last_ended(now - self._first_due(asset), account.zone))
        return None if days[0] > last else (days[0], last)

    def due(self, selection: Selection, now: datetime) -> Iterator[Span]:
        """Yield the spans of days that are due and chosen, in the order of keys."""
        wanted = sorted(
            (asset.source, customer_id, asset.query_name)
            for asset in self.assets
            if selection.has_query(*asset)
            for customer_id in self.accounts.get(asset.source, ())
        )
        for source, customer_id, query_name in wanted:
            asset = AssetName(source, query_name)
            days = self.due_days(asset, self.accounts[source][customer_id], now)
            if days is not None:
                yield from _chosen(Span(source, customer_id, query_name, *days), selection)

    def expects(self, key: Keyed) -> bool:
        """Tell whether a partition is one that there should be, at some time."""
        asset, account = self._of(key)
        days = None if account is None else self.days(asset, account)
        return days is not None and days[0] <= key.logical_date <= days[1]

    def is_due(self, key: Keyed, now: datetime) -> bool:
        """Tell whether a partition should be there by now."""
        due = self.due_at(key)
        return due is not None and due <= now

    def due_at(self, key: Keyed) -> datetime | None:
        """Return from when on a partition should be there; None if it is not expected at all."""
        asset, account = self._of(key)
        if account is None or not self.expects(key):
            return None
        return day_end(key.logical_date, account.zone) + self._first_due(asset)

    def zone(self, key: Keyed) -> tzinfo:
        """Return the time zone of a partition's day; UTC where its customer is not configured."""
        _, account = self._of(key)
        return UTC if account is None else account.zone

    def freshness(self, key: Keyed) -> Freshness | None:
        """Return the policy of a partition that is expected."""
        asset = self.assets.get(AssetName(key.source, key.query_name))
        return asset.freshness if asset is not None and self.expects(key) else None

    def upstreams(self, key: PartitionKey) -> Iterator[PartitionKey]:
        """Yield the partitions that one is made of, as far as they are expected."""
        asset = self.assets.get(AssetName(key.source, key.query_name))
        for each in asset.upstreams if asset is not None and self.expects(key) else ():
            source, query_name = each.asset
            customers = self.accounts.get(source, ()) if each.all_customers else (key.customer_id,)
            for customer_id in sorted(customers):
                for offset in range(each.first, each.last + 1):
                    day = key.logical_date + timedelta(days=offset)
                    upstream = PartitionKey(source, customer_id, query_name, day)
                    if self.expects(upstream):
                        yield upstream

    def _of(self, key: Keyed) -> tuple[AssetName, Account | None]:
        asset = AssetName(key.source, key.query_name)
        account = self.accounts.get(key.source, {}).get(key.customer_id)
        return asset, account if asset in self.assets else None

    def _first_due(self, asset: AssetName) -> timedelta:
        freshness = self.assets[asset].freshness
        return timedelta() if freshness is None else freshness.due[0]


def check_upstreams(assets: Iterable[Asset]) -> None:
    """Refuse upstreams that are not there, and assets that are made of themselves."""
    upstreams = {asset.name: [each.asset for each in asset.upstreams] for asset in assets}
    for name, above in upstreams.items():
        for upstream in above:
            if upstream not in upstreams:
                raise InvalidInput.of("upstreams", upstream, f"a query of the book, for {name}")
    done: set[AssetName] = set()
    for name in upstreams:
        _climb(name, upstreams, (), done)


def _climb(
    name: AssetName,
    upstreams: Mapping[AssetName, list[AssetName]],
    below: tuple[AssetName, ...],
    done: set[AssetName],
) -> None:
    if name in below:
        circle = " → ".join(str(each) for each in (*below[below.index(name) :], name))
        raise InvalidInput(
            f"upstreams go round in a circle: {circle}", field="upstreams", remedy="Take one of them out."
        )
    if name not in done:
        for upstream in upstreams[name]:
            _climb(upstream, upstreams, (*below, name), done)
        done.add(name)


def _chosen(span: Span, selection: Selection) -> Iterator[Span]:
    """Yield what a selection leaves of a span."""
    if selection.keys:
        for *own, day in sorted(map(key_of, selection.keys)):
            if tuple(own) == span[:3] and span.first <= day <= span.last:
                yield span._replace(first=day, last=day)
        return
    if selection.customers is not None and span.customer_id not in selection.customers:
        return
    first = max(span.first, selection.since or span.first)
    last = min(span.last, selection.until or span.last)
    if first <= last:
        yield span._replace(first=first, last=last)
