"""A source that takes several days in one request, with rows that a test gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Self

from sealbook.model import PartitionKey
from sealbook.model.contract import Query
from sealbook.model.versions import Term
from sealbook.raw import Row
from tests.support.extraction import FIRST_DAY, demo_queries

QUERY = demo_queries()["campaign_daily"]


def days(count: int, customer_id: str = "c0", first: date = FIRST_DAY) -> list[PartitionKey]:
    """Return consecutive days of one customer."""
    return [
        PartitionKey("demo", customer_id, QUERY.name, first + timedelta(days=number))
        for number in range(count)
    ]


def changed_on(day: date) -> Query:
    """Return the query with another version, and another text, from a day on."""
    contracts = {version: replace(QUERY.contracts["1"], schema_version=version) for version in "12"}
    return replace(
        QUERY, contracts=contracts, schema_version="2", terms={"1": Term(text="old"), "2": Term(day)}
    )


@dataclass
class RangedSource:
    """Gives what it has of the days that it is asked for, and raises what it is told to raise.

    `stream` is what it gives whatever it is asked for: for a server that does not keep to the protocol.
    """

    rows: Mapping[date, Sequence[Row]] = field(default_factory=dict)
    faults: Mapping[date, Exception] = field(default_factory=dict)
    """Raised when the stream comes to the day."""
    most: int = 31
    stream: Iterable[tuple[date, Row]] | None = None
    asked: list[tuple[PartitionKey, ...]] = field(default_factory=list)

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """Make one that has nothing."""
        del options
        return cls()

    def days_per_request(self, query: Query) -> int:
        """Take as many days as it was told to; one by one by an old text."""
        return 1 if query.text == "old" else self.most

    def fetch(self, key: PartitionKey, query: Query) -> Iterator[Row]:
        """Give the rows of one day."""
        return (row for _, row in self.fetch_range([key], query))

    def fetch_range(self, keys: Sequence[PartitionKey], query: Query) -> Iterator[tuple[date, Row]]:
        """Give the rows of several days."""
        del query
        self.asked.append(tuple(keys))
        if self.stream is not None:
            yield from self.stream
            return
        for key in keys:
            if key.logical_date in self.faults:
                raise self.faults[key.logical_date]
            for row in self.rows.get(key.logical_date, ()):
                yield key.logical_date, row
