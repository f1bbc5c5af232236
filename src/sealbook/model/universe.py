"""Which partitions there should be, and from when on: one definition for every layer (R-PST-6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.freshness import Freshness, Window, day_end, last_ended, later
from sealbook.model.keys import PartitionKey
from sealbook.model.selection import Keyed, Selection, days_of, key_of

Days = tuple[date, date]
"""The first and the last of consecutive days."""


class EarlierZone(NamedTuple):
    """A time zone that held for the days before a day."""

    before: date
    zone: tzinfo


@dataclass(frozen=True, slots=True)
class Account:
    """A customer of a source: the time zone of its days, and which days it has."""

    customer_id: str
    zone: tzinfo = UTC
    first_day: date | None = None
    last_day: date | None = None
    earlier: tuple[EarlierZone, ...] = ()
    """Its time zones before that, the first one first: days keep the one that they had (R-PST-8)."""
    account_class: str | None = None
    """Accounts of a class have due points of their own where these are learned."""

    def __post_init__(self) -> None:
        if self.first_day is not None and self.last_day is not None and self.first_day > self.last_day:
            raise InvalidInput(
                f"the days of an account end before they begin: first_day {self.first_day},"
                f" last_day {self.last_day}",
                field="first_day",
                value=self.first_day,
                remedy="Correct one of the two.",
            )

    def within(self, since: date, until: date) -> Days | None:
        """Return which days of a span the account has."""
        return _overlap((since, until), self.first_day, self.last_day)

    def zone_on(self, day: date) -> tzinfo:
        """Return the time zone of one of its days."""
        return next((each.zone for each in self.earlier if day < each.before), self.zone)

    def window(self, day: date) -> Window:
        """Return from when to when a day of it lasts, in UTC."""
        return Window.of(day, self.zone_on(day))

    def last_over(self, now: datetime) -> date:
        """Return the last of its days that is over."""
        last = last_ended(now, self.zone)
        for before, zone in reversed(self.earlier):
            if last >= before:
                break
            last = min(last_ended(now, zone), before - timedelta(days=1))
        return last


def _later(accounts: Iterable[Account], first: date) -> dict[str, Account]:
    """Return the accounts that have days from a first one on, with no earlier ones."""
    return {
        each.customer_id: each
        if each.first_day is None or each.first_day >= first
        else replace(each, first_day=first)
        for each in accounts
        if each.last_day is None or each.last_day >= first
    }


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

    def window(self, day: date) -> Days | None:
        """Return of which days the partitions are that one of a day is made of, if the calendar has any."""
        first = max(day.toordinal() + self.first, date.min.toordinal())
        last = min(day.toordinal() + self.last, date.max.toordinal())
        return None if first > last else (date.fromordinal(first), date.fromordinal(last))


@dataclass(frozen=True, slots=True)
class Asset:
    """A query, by what is expected of its partitions: by policy, or by that of a class of accounts."""

    name: AssetName
    freshness: Freshness | None = None
    upstreams: tuple[Upstream, ...] = ()
    by_class: Mapping[str, Freshness] = field(default_factory=dict)

    def freshness_of(self, account: Account) -> Freshness | None:
        """Return the policy of an account."""
        if account.account_class is None:
            return self.freshness
        return self.by_class.get(account.account_class, self.freshness)


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

    def since(self, first_days: Mapping[str, date]) -> Universe:
        """Return what there should be of days from the first one of each source on; all, of other sources."""
        if not first_days:
            return self
        known = {
            asset: max(day, first_days.get(asset.source, day)) for asset, day in self.first_known.items()
        }
        accounts = {
            source: _later(several.values(), first_days[source]) if source in first_days else several
            for source, several in self.accounts.items()
        }
        return replace(self, accounts=accounts, first_known=known)

    def days(self, asset: AssetName, account: Account) -> Days | None:
        """Return which days an account has of a query, due or not."""
        first = account.first_day or self.first_known.get(asset)
        return None if first is None else account.within(first, date.max)

    def due_days(self, asset: AssetName, account: Account, now: datetime) -> Days | None:
        """Return which days of a query are due by now."""
        days = self.days(asset, account)
        if days is None:
            return None
        return _overlap(days, None, account.last_over(now - self._first_due(asset)))

    def due(self, selection: Selection, now: datetime) -> Iterator[Span]:
        """Yield the spans of days that are due and chosen, in the order of keys."""
        if selection.keys:
            for key in sorted({*selection.keys}):
                if self.is_due(key, now):
                    yield Span(*key_of(key), key.logical_date)
            return
        customers = None if selection.customers is None else {*selection.customers}
        wanted = sorted(
            (asset.source, customer_id, asset.query_name)
            for asset in self.assets
            if selection.has_query(*asset)
            for customer_id in self.accounts.get(asset.source, ())
            if customers is None or customer_id in customers
        )
        for source, customer_id, query_name in wanted:
            asset = AssetName(source, query_name)
            due = self.due_days(asset, self.accounts[source][customer_id], now)
            days = due and _overlap(due, selection.since, selection.until)
            if days is not None:
                yield Span(source, customer_id, query_name, *days)

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
        return later(day_end(key.logical_date, account.zone_on(key.logical_date)), self._first_due(asset))

    def zone(self, key: Keyed) -> tzinfo:
        """Return the time zone of a partition's day; UTC where its customer is not configured."""
        _, account = self._of(key)
        return UTC if account is None else account.zone_on(key.logical_date)

    def freshness(self, key: Keyed) -> Freshness | None:
        """Return the policy of a partition that is expected."""
        asset, account = self._of(key)
        if account is None or not self.expects(key):
            return None
        return self.assets[asset].freshness_of(account)

    def upstreams(self, key: PartitionKey) -> Iterator[PartitionKey]:
        """Yield the partitions that one is made of, as far as they are expected."""
        asset = self.assets.get(AssetName(key.source, key.query_name))
        for each in asset.upstreams if asset is not None and self.expects(key) else ():
            source, query_name = each.asset
            window = each.window(key.logical_date)
            accounts = self.accounts.get(source, {})
            customers = accounts if each.all_customers else accounts.keys() & {key.customer_id}
            for customer_id in sorted(customers):
                there = self.days(each.asset, accounts[customer_id])
                days = there and window and _overlap(there, *window)
                for day in days_of(*days) if days else ():
                    yield PartitionKey(source, customer_id, query_name, day)

    def _of(self, key: Keyed) -> tuple[AssetName, Account | None]:
        asset = AssetName(key.source, key.query_name)
        account = self.accounts.get(key.source, {}).get(key.customer_id)
        return asset, account if asset in self.assets else None

    def _first_due(self, asset: AssetName) -> timedelta:
        freshness = self.assets[asset].freshness
        return timedelta() if freshness is None else freshness.due[0]


def check_upstreams(assets: Iterable[Asset]) -> None:
    """Refuse upstreams that are not there, and assets that are made of themselves.

    The error's value begins with an asset and that upstream of it which is wrong.
    """
    upstreams = {asset.name: [each.asset for each in asset.upstreams] for asset in assets}
    for name, above in upstreams.items():
        for upstream in above:
            if upstream not in upstreams:
                raise InvalidInput(
                    f"there is no query {upstream}",
                    field="upstreams",
                    value=(name, upstream),
                    remedy="Name a query of the book.",
                )
    try:
        TopologicalSorter(upstreams).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]  # each is followed by what it is made of
        raise InvalidInput(
            f"upstreams go round in a circle: {' → '.join(map(str, circle))}",
            field="upstreams",
            value=circle,
            remedy="Take one of them out.",
        ) from None


def _overlap(days: Days, since: date | None, until: date | None) -> Days | None:
    """Return what of some days lies in a span, which may be open at its ends."""
    first, last = max(days[0], since or days[0]), min(days[1], until or days[1])
    return None if first > last else (first, last)
