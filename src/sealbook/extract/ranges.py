"""Which days are fetched together: ranges, each of which is one request."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

from sealbook.config import SourceSettings
from sealbook.errors import ConfigError
from sealbook.extract.source import Ranged, Source, load_source
from sealbook.model import PartitionKey
from sealbook.model.contract import Query

Range = tuple[PartitionKey, ...]
"""Consecutive days of one customer and query, of one version of it: one request fetches them."""

_DAY = timedelta(days=1)


class NotRanged(ConfigError):
    """The settings want several days in one request of a source that takes one."""


class Ranges:
    """How the days of a source are gathered into requests, by its settings and by what it says of itself.

    Whoever fetches and whoever reckons with what that costs ask the same. No client library is loaded.
    """

    def __init__(self, settings: SourceSettings, source: Source | None = None) -> None:
        """Ask the source, which is made of its settings unless it is given; they may want no more of it."""
        self._queries = settings.queries
        self._source = source or load_source(settings.type, settings.options)
        self._most = settings.days_per_request
        self._versions: dict[tuple[str, date], Query] = {}
        self._days: dict[tuple[str, str], int] = {}
        if (self._most or 1) > 1 and not isinstance(self._source, Ranged):
            raise NotRanged(
                f"source {settings.name} takes one day in a request, not {self._most}",
                remedy="Leave days_per_request out.",
            )

    def days_per_request(self, query_name: str, day: date) -> int:
        """Return how many days are fetched in one request at most, of a query as it is on a day."""
        query = self._on(query_name, day)
        known = (query_name, query.schema_version)
        if known not in self._days:
            own = self._source.days_per_request(query) if isinstance(self._source, Ranged) else 1
            self._days[known] = min(own, self._most or own)
        return self._days[known]

    def gather(self, keys: Iterable[PartitionKey]) -> list[Range]:
        """Gather partitions into as few ranges as can be, in the order of keys: each is one request."""
        found: list[list[PartitionKey]] = []
        for key in sorted(keys):
            if found and self._goes_on(found[-1], key):
                found[-1].append(key)
            else:
                found.append([key])
        return [tuple(days) for days in found]

    def _goes_on(self, days: list[PartitionKey], key: PartitionKey) -> bool:
        """Say whether a partition can be fetched together with the days before it."""
        last = days[-1]
        return (
            (last.customer_id, last.query_name) == (key.customer_id, key.query_name)
            and key.logical_date - last.logical_date == _DAY
            and len(days) < self.days_per_request(key.query_name, key.logical_date)
            and self._version(last) == self._version(key)
        )

    def _version(self, key: PartitionKey) -> str:
        return self._on(key.query_name, key.logical_date).schema_version

    def _on(self, query_name: str, day: date) -> Query:
        if (query_name, day) not in self._versions:
            self._versions[query_name, day] = self._queries[query_name].on(day)
        return self._versions[query_name, day]


def singles(keys: Iterable[PartitionKey]) -> list[Range]:
    """Return each partition as a range of its own: day by day."""
    return [(key,) for key in keys]
