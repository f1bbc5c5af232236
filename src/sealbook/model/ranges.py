"""Ranges: consecutive days of one customer and query that a source is asked for in one request (R-CTL-10).

A request costs the same however many days it is for, so days that are ready are gathered. Which of them go
together is said here alone: for claims, for the rehearsal, and for what is foreseen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.keys import PartitionKey
from sealbook.model.universe import AssetName

_NEVER = 2**31
_DAY = timedelta(days=1)


class Stretch(NamedTuple):
    """The days of a query from one on (`date.toordinal`), of which one request takes so many.

    It ends where the next one begins, and no range goes from one into the other: another text of the query
    may hold from there on.
    """

    first: int
    days_per_request: int


@dataclass(frozen=True)
class DaysPerRequest:
    """How many days of a query one request takes; one, where nothing is said of it."""

    stretches: Mapping[AssetName, tuple[Stretch, ...]] = field(default_factory=dict)
    """By query, the earliest first."""

    def __post_init__(self) -> None:
        for name, stretches in self.stretches.items():
            for each in stretches:
                if each.days_per_request < 1:
                    raise InvalidInput.of(
                        f"days_per_request of {name}", each.days_per_request, "a whole number from 1"
                    )

    @cached_property
    def sources(self) -> frozenset[str]:
        """The sources that take more than one day in a request of some query."""
        return frozenset(
            name.source
            for name, stretches in self.stretches.items()
            if any(each.days_per_request > 1 for each in stretches)
        )

    def of(self, source: str, query_name: str) -> tuple[Stretch, ...]:
        """Return the stretches of a query; none, if it is asked for day by day."""
        return self.stretches.get(AssetName(source, query_name), ())

    def requests(self, keys: Iterable[PartitionKey]) -> Counter[AssetName]:
        """Return how many requests partitions need that are all asked for the first time, by query."""
        days: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        for key in keys:
            days[key.source, key.customer_id, key.query_name].append(key.logical_date.toordinal())
        requests: Counter[AssetName] = Counter()
        for (source, _, query_name), own in days.items():
            name = AssetName(source, query_name)
            requests[name] += count_ranges(own, self.of(*name))
        return requests


DAY_BY_DAY = DaysPerRequest()


def range_around(
    day: int, ready: Container[int], stretches: tuple[Stretch, ...], *, tries: int = 0, most: int = _NEVER
) -> range:
    """Return the days that are asked for together with one: those before it that are ready, then those after.

    What has failed before is asked for in ranges half as long for each time, so that one bad day ends up
    alone and holds nobody up; `ready` has only what has failed as often. `most` bounds them, too.
    """
    begins, ends, days = _bounds(day, stretches)
    size = min(_halved(days, tries), most)
    first, end = day, day + 1
    while end - first < size and first > begins and first - 1 in ready:
        first -= 1
    while end - first < size and end < ends and end in ready:
        end += 1
    return range(first, end)


def range_size(day: int, stretches: tuple[Stretch, ...], tries: int) -> int:
    """Return how many days are asked for in one request at most, where one of them is this."""
    return _halved(_bounds(day, stretches)[2], tries)


def count_ranges(days: Iterable[int], stretches: tuple[Stretch, ...], *, tries: int = 0) -> int:
    """Return how many requests ask for all of these days: as few as can be."""
    count = end = 0
    before = -1
    for day in sorted(set(days)):
        if day >= end or day > before + 1:
            _, stretch_ends, size = _bounds(day, stretches)
            end = min(day + _halved(size, tries), stretch_ends)
            count += 1
        before = day
    return count


def _halved(days: int, tries: int) -> int:
    return max(days >> tries, 1)


def follows(key: PartitionKey, before: PartitionKey) -> bool:
    """Tell whether a partition is the next day of the same customer and query."""
    return (
        key.logical_date - before.logical_date == _DAY
        and key.query_name == before.query_name
        and key.customer_id == before.customer_id
        and key.source == before.source
    )


def up_to_gap(keys: Sequence[PartitionKey]) -> Sequence[PartitionKey]:
    """Return the first of some partitions, as many as follow each other: what one request can ask for."""
    gaps = (place for place in range(1, len(keys)) if not follows(keys[place], keys[place - 1]))
    return keys[: next(gaps, len(keys))]


def _bounds(day: int, stretches: tuple[Stretch, ...]) -> tuple[int, int, int]:
    """Return where the stretch of a day begins and ends, and how many days of it a request takes."""
    index = bisect_right(stretches, day, key=_first_of) - 1
    if index < 0:
        return day, day + 1, 1
    begins, days = stretches[index]
    return begins, stretches[index + 1].first if index + 1 < len(stretches) else _NEVER, days


def _first_of(stretch: Stretch) -> int:
    return stretch.first
