"""What fetching costs: how many days of each query one request takes, by the settings of a book."""

from __future__ import annotations

from sealbook.config import Settings
from sealbook.extract.ranges import Ranges
from sealbook.model.ranges import DaysPerRequest, Stretch
from sealbook.model.universe import AssetName


def days_per_request(settings: Settings) -> DaysPerRequest:
    """Return how many days one request takes, as extraction gathers them; no client library is loaded."""
    found: dict[AssetName, tuple[Stretch, ...]] = {}
    for source in settings.sources.values():
        ranges = Ranges(source)
        for query in source.queries.values():
            stretches = tuple(
                Stretch(since.toordinal(), ranges.days_per_request(query.name, since))
                for since, _ in query.spans
            )
            if any(each.days_per_request > 1 for each in stretches):
                found[AssetName(source.name, query.name)] = stretches
    return DaysPerRequest(found)
