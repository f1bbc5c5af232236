"""Which partitions to extract, and how they are dealt to tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import product
from typing import NamedTuple

from sealbook.config import SourceSettings, configured
from sealbook.errors import ConfigError, Conflict, InvalidInput, PastHorizon
from sealbook.extract.ranges import Range, Ranges
from sealbook.model import PartitionKey
from sealbook.model.claims import Lease
from sealbook.model.horizons import Horizons
from sealbook.model.selection import Selection
from sealbook.model.universe import Days
from sealbook.model.words import counted


class NotBegun(NamedTuple):
    """Which day it is in a time zone, and the last one that is planned of an account there."""

    today: date
    last: date
    zone: str


@dataclass(frozen=True)
class ExtractPlan:
    """What a run sets out to fetch: selections of each source, said in full.

    `left_out` counts partitions that were chosen by a span of days, and that their accounts do not have.
    `past_horizon` counts those whose source does not give them any more. `held` are those that others are
    working on, and that are left to them.
    """

    parts: tuple[Selection, ...]
    left_out: int = 0
    held: tuple[Lease, ...] = ()
    past_horizon: int = 0

    @classmethod
    def of_ranges(cls, ranges: Iterable[Sequence[PartitionKey]]) -> ExtractPlan:
        """Return a plan to fetch each of these ranges by itself, in one request; they are in key order.

        Days of one part that follow each other are fetched together: ranges that do are in two.
        """
        parts: tuple[list[PartitionKey], list[PartitionKey]] = ([], [])
        for place, days in enumerate(ranges):
            parts[place % 2].extend(days)
        return cls(tuple(Selection(keys=keys) for keys in parts if keys))

    @cached_property
    def keys(self) -> dict[str, list[PartitionKey]]:
        """The partitions by source."""
        found: dict[str, list[PartitionKey]] = defaultdict(list)
        for part in self.parts:
            for key in part.expand():
                found[key.source].append(key)
        return dict(found)

    def ranges(self, source: str, ranges: Ranges, besides: Collection[PartitionKey] = ()) -> list[Range]:
        """Return the partitions of a source as they are fetched together, without some that are there.

        No range goes across two parts: who wants days fetched apart says them in parts of their own.
        """
        return [
            days
            for part in self.parts
            if part.source is None or source in part.source
            for days in ranges.gather(
                key for key in part.expand() if key.source == source and key not in besides
            )
        ]

    @property
    def sources(self) -> set[str]:
        """The sources that are asked."""
        named = {key.source for part in self.parts for key in part.keys}
        return named.union(*(part.source or () for part in self.parts))

    def __len__(self) -> int:
        return sum(part.count() for part in self.parts)

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day."""
        firsts, lasts = zip(*(part.span() for part in self.parts), strict=True)
        return min(firsts), max(lasts)

    def within(self, horizons: Horizons) -> ExtractPlan:
        """Return the plan without days that their sources do not give any more.

        PastHorizon if one of them was named, or nothing else was chosen.
        """
        for key in (key for part in self.parts for key in part.keys):
            if horizons.is_past(key):
                raise PastHorizon(f"{key}: {horizons.why(key.source)}", remedy=_PAST_REMEDY)
        parts = tuple(cut for part in self.parts if (cut := _given(part, horizons)) is not None)
        if not parts:
            sources = sorted({name for part in self.parts for name in part.source or ()})
            said = "; ".join(map(horizons.why, sources))
            raise PastHorizon(f"all that is chosen is too long ago: {said}", remedy=_PAST_REMEDY)
        past = len(self) - sum(part.count() for part in parts)
        return replace(self, parts=parts, past_horizon=past)

    def besides(self, leases: Sequence[Lease]) -> ExtractPlan:
        """Return the plan without what others are working on (R-CTL-4); Conflict if that leaves nothing."""
        if not leases:
            return self
        planned = {key for keys in self.keys.values() for key in keys}
        held = tuple(lease for lease in leases if lease.key in planned)
        taken = {lease.key for lease in held}
        rest = tuple(some for part in self.parts for some in _besides(part, taken))
        if not rest:
            holders = ", ".join(sorted({lease.holder for lease in held}))
            raise Conflict(
                f"others are working on all that is chosen: {counted(len(held), 'partition')}, by {holders}",
                remedy="Wait for them: `sealbook control leases` shows until when. What loops are to leave"
                " alone, pause first: `sealbook state pause`.",
            )
        return replace(self, parts=rest, held=held)

    def not_begun(self, sources: Mapping[str, SourceSettings], now: datetime) -> NotBegun | None:
        """Return which day it is where planned days have not begun, in the time zone of their account.

        Of several zones it is the one that is furthest behind.
        """
        ahead = []
        for source, customer_id, last in self._last_days():
            account = sources[source].accounts[customer_id]
            if last > (day := account.last_over(now) + timedelta(days=1)):
                ahead.append(NotBegun(day, last, str(account.zone)))
        return min(ahead, key=lambda each: (each.today, date.max - each.last), default=None)

    def _last_days(self) -> Iterator[tuple[str, str, date]]:
        for part in self.parts:
            for key in part.keys:
                yield key.source, key.customer_id, key.logical_date
            for source, customer_id in product(part.source or (), part.customers or ()):
                yield source, customer_id, part.span()[1]


def plan_extraction(sources: Mapping[str, SourceSettings], selection: Selection) -> ExtractPlan:
    """Plan to fetch every partition that is configured and chosen; the days must be said.

    What is not configured is a ConfigError, and so is a key of a day that its account does not have; of a
    span, such days are left out (R-PST-6).
    """
    if not selection.keys and (selection.since is None or selection.until is None):
        raise InvalidInput(
            "there is no telling which days to fetch: since and until are needed",
            field="since",
            remedy="Give --since and --until, or --day.",
        )
    chosen = configured(sources, selection)
    if not chosen:
        raise ConfigError(
            "no source has both such customers and such queries",
            remedy="Choose customers and queries of the same source.",
        )
    if selection.keys:
        _check_days(sources, selection.keys)
        return ExtractPlan(tuple(chosen))
    parts = tuple(part for each in chosen for part in _had(sources, each))
    left_out = sum(part.count() for part in chosen) - sum(part.count() for part in parts)
    if not parts:
        raise ConfigError(
            f"no account that is chosen has a day of {selection.since} … {selection.until}", remedy=_REMEDY
        )
    return ExtractPlan(parts, left_out)


_PAST_REMEDY = "Choose later days. What is sealed of older ones stays, and can be judged and loaded."
_REMEDY = "Choose other days, or correct first_day and last_day in the settings."


def _had(sources: Mapping[str, SourceSettings], chosen: Selection) -> Iterator[Selection]:
    """Yield what the accounts of a source have of a selection, said in full: one for each span of days."""
    (source,), since, until = chosen.source or (), *chosen.span()
    spans: dict[Days, list[str]] = defaultdict(list)
    for customer_id in chosen.customers or ():
        days = sources[source].accounts[customer_id].within(since, until)
        if days is not None:
            spans[days].append(customer_id)
    for (first, last), customers in spans.items():
        yield replace(chosen, customers=tuple(customers), since=first, until=last)


def _given(part: Selection, horizons: Horizons) -> Selection | None:
    """Return what of a selection that is said in full its source still gives."""
    if part.keys:
        return part
    (source,), since, until = part.source or (), *part.span()
    first = horizons.first_days.get(source, since)
    return None if until < first else replace(part, since=max(since, first))


def _besides(part: Selection, taken: Collection[PartitionKey]) -> Iterator[Selection]:
    """Yield what is left of a selection that is said in full, in few pieces where little is taken."""
    if part.keys:
        if left := [key for key in part.keys if key not in taken]:
            yield Selection(keys=left)
        return
    (source,), since, until = part.source or (), *part.span()
    days: dict[tuple[str, str], list[date]] = defaultdict(list)
    for key in sorted(key for key in taken if part.matches(key)):
        days[key.customer_id, key.query_name].append(key.logical_date)
    touched = {customer_id for customer_id, _ in days}
    if free := [each for each in part.customers or () if each not in touched]:
        yield replace(part, customers=tuple(free))
    for customer_id in sorted(touched):
        if queries := [each for each in part.queries or () if (customer_id, each) not in days]:
            yield replace(part, customers=(customer_id,), queries=tuple(queries))
    for (customer_id, query_name), own in days.items():
        firsts = [since, *(day + timedelta(days=1) for day in own)]
        lasts = [*(day - timedelta(days=1) for day in own), until]
        for first, last in zip(firsts, lasts, strict=True):
            if first <= last:
                yield Selection((), source, customer_id, query_name, first, last)


def _check_days(sources: Mapping[str, SourceSettings], keys: Iterable[PartitionKey]) -> None:
    """Refuse keys of days that their accounts do not have."""
    for key in keys:
        account = sources[key.source].accounts.get(key.customer_id)
        if account is None:
            raise ConfigError(f"{key}: source {key.source} has no such customer", remedy="Correct the key.")
        if account.within(key.logical_date, key.logical_date) is None:
            has = f"{account.first_day or '…'} … {account.last_day or ''}".rstrip()
            raise ConfigError(f"{key}: the account has no such day, but {has}", remedy=_REMEDY)


def deal(ranges: Iterable[Range], tasks: int) -> list[list[Range]]:
    """Deal ranges to tasks: equally many to each, each account's to all, so that a slow one holds none up.

    Within a task the accounts take turns, for the same reason.
    """
    accounts: dict[str, list[Range]] = defaultdict(list)
    for days in ranges:
        accounts[days[0].customer_id].append(days)
    in_turn = [(place, days) for own in accounts.values() for place, days in enumerate(own)]
    dealt = [sorted(in_turn[first::tasks], key=lambda item: item[0]) for first in range(tasks)]
    return [[days for _, days in task] for task in dealt if task]
