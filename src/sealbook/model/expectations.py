"""What partitions are held against at one moment: which there should be, how fresh, by which contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from sealbook.model.freshness import Deadline, Freshness, day_end
from sealbook.model.horizons import NO_HORIZONS, Horizons
from sealbook.model.keys import PartitionKey
from sealbook.model.selection import Keyed
from sealbook.model.staleness import CodeInForce, StaleReason, stale_reasons
from sealbook.model.universe import AssetName, Universe

_ONCE = Freshness((timedelta(),))
"""When a day without a policy is settled: as soon as it is over."""


@dataclass(frozen=True)
class Expectations:
    """The universe, the time and the contracts in force, by which a status is told at query time (R-PST-3).

    A query without a contract in force has no code to be held against.
    """

    universe: Universe
    now: datetime
    in_force: Mapping[AssetName, CodeInForce] = field(default_factory=lambda: MappingProxyType({}))
    horizons: Horizons = NO_HORIZONS

    @property
    def fetchable(self) -> Expectations:
        """The same without the days that their sources do not give any more."""
        return replace(self, universe=self.universe.since(self.horizons.first_days))

    def code(self, key: Keyed) -> CodeInForce | None:
        """Return the contract in force for a partition's query."""
        return self.in_force.get(AssetName(key.source, key.query_name))

    def deadline(self, key: Keyed) -> Deadline | None:
        """Return the deadline of a partition that has passed, if it has a policy."""
        freshness = self.universe.freshness(key)
        if freshness is None:
            return None
        return freshness.deadline(day_end(key.logical_date, self.universe.zone(key)), self.now)

    def is_due(self, key: Keyed) -> bool:
        """Tell whether a partition should be there by now."""
        return self.universe.is_due(key, self.now)

    def is_late(self, key: Keyed, materialized_at: datetime | None) -> bool:
        """Tell whether a deadline has passed that a partition was not materialized for (R-PST-8)."""
        deadline = self.deadline(key)
        return deadline is not None and (materialized_at is None or materialized_at < deadline.point)

    def is_settled(self, key: Keyed, materialized_at: datetime | None) -> bool:
        """Tell whether a partition was materialized for the last time that it is due."""
        if materialized_at is None or not self.is_due(key):
            return False
        freshness = self.universe.freshness(key) or _ONCE
        return freshness.is_settled(day_end(key.logical_date, self.universe.zone(key)), materialized_at)

    def reasons(
        self,
        key: PartitionKey,
        materialized_at: datetime,
        code_version: str | None,
        materialized: Callable[[PartitionKey], datetime | None],
    ) -> list[StaleReason]:
        """Return why a partition is stale; `materialized` says when an upstream partition was, if ever."""
        return stale_reasons(
            materialized_at,
            code_version,
            deadline=self.deadline(key),
            upstreams=((upstream, materialized(upstream)) for upstream in self.universe.upstreams(key)),
            code=self.code(key),
        )
