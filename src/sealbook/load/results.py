"""What came of the load of one partition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sealbook.model import PartitionKey, RunId


class LoadEnding(StrEnum):
    """How the load of a partition ended."""

    LOADED = "loaded"
    """It had no pointer before."""
    REPLACED = "replaced"
    """Its pointer named another run, or another schema_version."""
    HIDDEN = "hidden"
    """Its pointer was taken away: its state is not success any more (R-WH-5)."""
    UNCHANGED = "unchanged"
    """It was published already: another load was quicker; or it was to be staged again, and was intact."""
    REBUILT = "rebuilt"
    """Its artifact was missing or damaged, and was staged again: the same bytes as before."""
    SKIPPED = "skipped"
    """Its authority moved on since the plan, and it was left alone (R-WH-3)."""
    FAILED = "failed"


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


class OnProgress(Protocol):
    """Hears of partitions whose work is done; those that are staged are published with their batch."""

    def __call__(self, partitions: int, *, rows: int, size: int) -> None:
        """Count partitions, with the rows and bytes that were staged of them."""


def unheard(partitions: int, *, rows: int, size: int) -> None:
    """Show no progress."""
