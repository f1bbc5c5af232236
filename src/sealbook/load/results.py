"""What came of the load of one partition, and of a whole load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from sealbook.model import PartitionKey, RunId
from sealbook.model.failures import ErrorClass


class LoadEnding(StrEnum):
    """How the load of a partition ended."""

    LOADED = "loaded"
    """It had no pointer before."""
    REPLACED = "replaced"
    """Its pointer named another run, or another schema_version."""
    IDENTICAL = "identical"
    """Its pointer names another run now, whose payload is the same: nothing was staged."""
    HIDDEN = "hidden"
    """Its pointer was taken away: its state is not success any more (R-WH-5)."""
    UNCHANGED = "unchanged"
    """It was published already: another load was quicker; or it was to be rebuilt, and was intact."""
    REBUILT = "rebuilt"
    """Its artifact was missing or damaged, and was staged again: the same bytes as before."""
    SKIPPED = "skipped"
    """Its authority moved on since the plan, and it was left alone (R-WH-3)."""
    FAILED = "failed"


PUBLISHING = (LoadEnding.LOADED, LoadEnding.REPLACED, LoadEnding.IDENTICAL)
"""How the load of a partition ends of which consumers now get another run, or get one for the first time."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result for one partition; counts are those of its artifact, and 0 where nothing was staged."""

    key: PartitionKey
    ending: LoadEnding
    run_id: RunId | None = None
    schema_version: str | None = None
    record_count: int = 0
    bytes: int = 0
    reason: str | None = None
    """Why it was skipped, or failed."""
    error_class: ErrorClass | None = None
    """What a failure asks for."""


@dataclass
class LoadOutcome:
    """What came of a load, counted as results come."""

    endings: Counter[LoadEnding] = field(default_factory=Counter)
    rows: int = 0
    bytes: int = 0
    failures: list[Loaded] = field(default_factory=list)

    def add(self, results: Iterable[Loaded]) -> None:
        """Count results."""
        for result in results:
            self.endings[result.ending] += 1
            self.rows += result.record_count
            self.bytes += result.bytes
            if result.ending is LoadEnding.FAILED:
                self.failures.append(result)

    @property
    def published(self) -> int:
        """How many partitions consumers now get another run of, or get for the first time."""
        return sum(self.endings[ending] for ending in PUBLISHING)
