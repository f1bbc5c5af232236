"""Which partitions to extract, and how they are dealt to tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from sealbook.config import SourceSettings, configured
from sealbook.errors import ConfigError, InvalidInput
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection


@dataclass(frozen=True)
class ExtractPlan:
    """What a run sets out to fetch: a selection of each source, said in full."""

    parts: tuple[Selection, ...]

    @cached_property
    def keys(self) -> dict[str, list[PartitionKey]]:
        """The partitions by source."""
        found: dict[str, list[PartitionKey]] = defaultdict(list)
        for part in self.parts:
            for key in part.expand():
                found[key.source].append(key)
        return dict(found)

    def __len__(self) -> int:
        return sum(part.count() for part in self.parts)

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day."""
        firsts, lasts = zip(*(part.span() for part in self.parts), strict=True)
        return min(firsts), max(lasts)


def plan_extraction(sources: Mapping[str, SourceSettings], selection: Selection) -> ExtractPlan:
    """Plan to fetch every partition that is configured and chosen; the days must be said.

    What is not configured is a ConfigError.
    """
    if not selection.keys and (selection.since is None or selection.until is None):
        raise InvalidInput(
            "there is no telling which days to fetch: since and until are needed",
            field="since",
            remedy="Give --since and --until, or --day.",
        )
    parts = tuple(configured(sources, selection))
    if not parts:
        raise ConfigError(
            "no source has both such customers and such queries",
            remedy="Choose customers and queries of the same source.",
        )
    return ExtractPlan(parts)


def deal(keys: Iterable[PartitionKey], tasks: int) -> list[list[PartitionKey]]:
    """Deal keys to tasks: equally many to each, and each account's to all, so that a slow one holds none up.

    Within a task the accounts take turns, for the same reason.
    """
    accounts: dict[str, list[PartitionKey]] = defaultdict(list)
    for key in keys:
        accounts[key.customer_id].append(key)
    in_turn = [(place, key) for own in accounts.values() for place, key in enumerate(own)]
    dealt = [sorted(in_turn[first::tasks], key=lambda item: item[0]) for first in range(tasks)]
    return [[key for _, key in task] for task in dealt if task]
