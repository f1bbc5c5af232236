"""Which partitions: the one answer that every layer and every command takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import date
from enum import StrEnum
from itertools import product
from operator import attrgetter
from typing import Protocol, TypeVar

from sealbook.errors import InvalidInput
from sealbook.model.keys import (
    PartitionKey,
    RunId,
    check_customer_id,
    check_date,
    check_key,
    check_name,
    parse_date,
)
from sealbook.model.state import Status

T = TypeVar("T")

_FILTERS = ("source", "customers", "queries", "since", "until")


class Keyed(Protocol):
    """A key, or anything that has its fields."""

    @property
    def source(self) -> str: ...
    @property
    def customer_id(self) -> str: ...
    @property
    def query_name(self) -> str: ...
    @property
    def logical_date(self) -> date: ...


key_of = attrgetter("source", "customer_id", "query_name", "logical_date")


@dataclass(frozen=True, slots=True)
class Selection:
    """Partitions by key, or by what they have in common; None leaves all in, an empty list leaves none in.

    `since` and `until` are both included. `runs` and `statuses` narrow either way of choosing. A single name
    may stand for a list of one, and a day may be ISO text.
    """

    keys: tuple[PartitionKey, ...] = ()
    source: tuple[str, ...] | None = None
    customers: tuple[str, ...] | None = None
    queries: tuple[str, ...] | None = None
    since: date | None = None
    until: date | None = None
    runs: tuple[RunId, ...] | None = None
    statuses: tuple[Status, ...] | None = None

    def __init__(
        self,
        keys: Iterable[PartitionKey] = (),
        source: str | Iterable[str] | None = None,
        customers: str | Iterable[str] | None = None,
        queries: str | Iterable[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        runs: str | Iterable[str] | None = None,
        statuses: str | Iterable[str] | None = None,
    ) -> None:
        given = {
            "keys": _several("keys", (keys,) if isinstance(keys, PartitionKey) else keys, _key),
            "source": _several("source", source, _name("source")),
            "customers": _several("customer_id", customers, _customer),
            "queries": _several("query_name", queries, _name("query_name")),
            "since": _day("since", since),
            "until": _day("until", until),
            "runs": _several("run_id", runs, RunId),
            "statuses": _several("status", statuses, _status),
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        filters = [name for name in _FILTERS if getattr(self, name) is not None]
        if self.keys and filters:
            raise InvalidInput(
                f"partitions are named by key, and chosen by {', '.join(filters)} besides",
                field="selection",
                remedy="Give keys or filters, not both.",
            )
        if self.since is not None and self.until is not None and self.since > self.until:
            raise InvalidInput(
                f"the span of days ends before it begins: since {self.since}, until {self.until}",
                field="since",
                value=self.since,
                remedy="Give the first day as since and the last one as until.",
            )

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self == Selection()

    def matches(self, key: Keyed) -> bool:
        """Say whether a partition is chosen, whatever its runs and status."""
        if self.keys:
            return any(key_of(key) == key_of(each) for each in self.keys)
        return (
            (self.source is None or key.source in self.source)
            and (self.customers is None or key.customer_id in self.customers)
            and (self.queries is None or key.query_name in self.queries)
            and self.has_day(key.logical_date)
        )

    def has_run(self, run_id: RunId) -> bool:
        """Say whether a run is chosen."""
        return self.runs is None or run_id in self.runs

    def has_query(self, source: str, query_name: str) -> bool:
        """Say whether partitions of a query may be chosen, as far as names tell."""
        if self.keys and all((key.source, key.query_name) != (source, query_name) for key in self.keys):
            return False
        return (self.source is None or source in self.source) and (
            self.queries is None or query_name in self.queries
        )

    def has_day(self, day: date) -> bool:
        """Say whether a day lies in the span."""
        return (self.since is None or day >= self.since) and (self.until is None or day <= self.until)

    def expand(self) -> Iterator[PartitionKey]:
        """Yield every partition that is meant, which must be said in full: by keys, or by all filters."""
        if self.keys:
            yield from self.keys
            return
        source, customers, queries, since, until = self._in_full()
        for name, customer_id, query_name in product(source, customers, queries):
            for day in days_of(since, until):
                yield PartitionKey(name, customer_id, query_name, day)

    def count(self) -> int:
        """Return how many partitions are meant, which must be said in full, without making one of them."""
        if self.keys:
            return len(self.keys)
        source, customers, queries, since, until = self._in_full()
        return len(source) * len(customers) * len(queries) * ((until - since).days + 1)

    def span(self) -> tuple[date, date]:
        """Return the first and the last day that is meant, which must be said in full."""
        if self.keys:
            days = [key.logical_date for key in self.keys]
            return min(days), max(days)
        *_, since, until = self._in_full()
        return since, until

    def _in_full(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], date, date]:
        source, customers, queries, since, until = (
            self.source, self.customers, self.queries, self.since, self.until,
        )  # fmt: skip
        if source is None or customers is None or queries is None or since is None or until is None:
            raise InvalidInput.of("selection", self.to_dict(), f"each of {', '.join(_FILTERS)}")
        return source, customers, queries, since, until

    def narrowed(
        self,
        *,
        customers: Iterable[str] | None = None,
        runs: Iterable[str] | None = None,
        since: date | None = None,
        until: date | None = None,
    ) -> Selection:
        """Return what is left where all of this holds as well; an id that nothing can have leaves nothing."""
        if self.keys:
            raise InvalidInput.of("selection", self, "filters: what is named by key is not narrowed")
        narrower = self
        if customers is not None:
            narrower = replace(narrower, customers=_both(self.customers, customers, _customer))
        if runs is not None:
            narrower = replace(narrower, runs=_both(self.runs, runs, RunId))
        first = max(filter(None, (self.since, since)), default=None)
        last = min(filter(None, (self.until, until)), default=None)
        if first is not None and last is not None and first > last:
            return replace(narrower, customers=())  # two spans without a common day
        return replace(narrower, since=first, until=last)

    def to_dict(self) -> dict[str, object]:
        """Return what is chosen by, as JSON holds it; what chooses nothing is left out."""
        members = {each.name: getattr(self, each.name) for each in fields(self)}
        members["keys"] = self.keys or None
        return {name: _plain(value) for name, value in members.items() if value is not None}

    @classmethod
    def from_dict(cls, members: Mapping[str, object]) -> Selection:
        """Read what `to_dict` gives."""
        given = dict(members)
        keys = given.pop("keys", [])
        if not isinstance(keys, list):
            raise InvalidInput.of("keys", keys, "a list of partition keys")
        return cls(keys=[PartitionKey.parse(key) for key in keys], **given)  # type: ignore[arg-type]  # checked


@dataclass(frozen=True, slots=True)
class Extent:
    """Which customers, and which span of days, some partitions are of; no partitions have no span."""

    customers: frozenset[str] = frozenset()
    first: date | None = None
    last: date | None = None

    @classmethod
    def of(cls, spans: Iterable[tuple[str, date, date]]) -> Extent:
        """Gather spans of customers, each with its first day and its last; one may come again."""
        customers: set[str] = set()
        first = last = None
        for customer_id, since, until in spans:
            customers.add(customer_id)
            first = since if first is None else min(first, since)
            last = until if last is None else max(last, until)
        return cls(frozenset(customers), first, last)

    def __or__(self, other: Extent) -> Extent:
        """Return the extent of the partitions of both."""
        first = [each.first for each in (self, other) if each.first is not None]
        last = [each.last for each in (self, other) if each.last is not None]
        return Extent(self.customers | other.customers, min(first, default=None), max(last, default=None))


def _several(field: str, values: object, read: Callable[[str], T]) -> tuple[T, ...] | None:
    """Return each of some values once, in the order given."""
    if values is None:
        return None
    if isinstance(values, str):
        values = (values,)
    if not isinstance(values, Iterable):
        raise InvalidInput.of(field, values, "one, or a list of them")
    return tuple(dict.fromkeys(map(read, values)))


def _key(value: object) -> PartitionKey:
    check_key(value)
    assert isinstance(value, PartitionKey)
    return value


def _name(field: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        check_name(field, value)
        return value

    return read


def _customer(value: str) -> str:
    check_customer_id("any", value)
    return value


def _status(value: str) -> Status:
    if value not in list(Status):
        raise InvalidInput.of("status", value, f"one of {', '.join(Status)}")
    return Status(value)


def _day(field: str, value: date | str | None) -> date | None:
    if value is None:
        return None
    if isinstance(value, str):
        return parse_date(field, value)
    check_date(field, value)
    return value


def _both(chosen: tuple[T, ...] | None, others: Iterable[str], read: Callable[[str], T]) -> tuple[T, ...]:
    wanted = set(_readable(others, read))
    return tuple(sorted(wanted if chosen is None else wanted & {*chosen}, key=str))


def _readable(values: Iterable[str], read: Callable[[str], T]) -> Iterator[T]:
    """Yield those of some values that can be read: to look for anything else is to find nothing."""
    for each in values:
        with suppress(InvalidInput):
            yield read(each)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [str.__str__(each) if isinstance(each, str | StrEnum) else str(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


def days_of(since: date, until: date) -> Iterator[date]:
    """Yield every day of a span, both ends included."""
    return map(date.fromordinal, range(since.toordinal(), until.toordinal() + 1))
