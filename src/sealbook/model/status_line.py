"""One partition's status as it is shown and exported, what can be asked for, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from sealbook.model.display import Display
from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.partition_events import Stage
from sealbook.model.staleness import StaleCode
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.universe import AssetName


class StatusLine(NamedTuple):
    """What is known of a partition, held against what is expected of it.

    `stale_reasons` are all that hold, `stale_reason_code` is the main one, `stale_since` is since when it
    does. Who never touched a partition has left it without `attempted`; it is missing if it is `due`.
    """

    key: PartitionKey
    last_materialization_run_id: RunId | None
    last_materialization_at: datetime | None
    last_materialization_code_version: str | None
    last_attempt_run_id: RunId | None
    last_attempt_at: datetime | None
    last_attempt_outcome: AttemptOutcome | None
    last_attempt_stage: Stage | None
    """Where a FAILED attempt failed: extract, validate or load."""
    stale_since: datetime | None
    stale_reason_code: StaleCode | None
    stale_reasons: tuple[StaleCode, ...]
    row_version: str | None
    availability: Availability
    display: Display
    expected: bool
    due: bool
    provisional: bool
    """It is expected, and not due yet."""
    settled: bool
    """It was materialized for the last time that it is due."""
    late: bool
    """A deadline has passed that it was not materialized for."""
    attempted: bool

    @property
    def missing(self) -> bool:
        """Whether it is due and nobody ever touched it."""
        return self.due and not self.attempted


@dataclass(frozen=True, slots=True)
class StatusFilter:
    """Which lines are asked for: those that any of this is true of; all if nothing is said."""

    displays: frozenset[Display] = frozenset()
    stale: bool = False
    failed: bool = False
    """The last attempt failed."""
    missing: bool = False
    late: bool = False
    attention: bool = False
    """It is expected, and not simply materialized: what is not due yet is left out."""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self == ALL

    @property
    def takes_missing(self) -> bool:
        """Whether partitions are taken that are due and that nobody ever touched."""
        asked = self.is_all or self.missing or self.late or self.attention
        return asked or Display.NEVER_MATERIALIZED in self.displays

    def takes(self, line: StatusLine) -> bool:
        """Say whether a line is asked for."""
        return (
            self.is_all
            or line.display in self.displays
            or (self.stale and bool(line.stale_reasons))
            or (self.failed and line.last_attempt_outcome is AttemptOutcome.FAILED)
            or (self.missing and line.missing)
            or (self.late and line.late)
            or (self.attention and needs_attention(line))
        )


ALL = StatusFilter()


def needs_attention(line: StatusLine) -> bool:
    """Say whether somebody may have to look at a partition."""
    if not line.expected or line.display is Display.MATERIALIZED:
        return False
    return line.due or line.display is not Display.NEVER_MATERIALIZED


class DayCells(NamedTuple):
    """A character for each day of a span, of one customer and query; a blank where nothing is expected.

    It is the letter of a cell or the code of a standing.
    """

    source: str
    customer_id: str
    query_name: str
    letters: str


class QueryCounts(NamedTuple):
    """The partitions of one query that are due, and what became of them."""

    due: int = 0
    readable: int = 0
    behind: int = 0
    failed: int = 0
    """Of which the last attempt was rejected, or could not be staged."""
    not_fetched: int = 0
    """Of which the last attempt failed in extraction."""
    late: int = 0
    missing: int = 0
    newest_day: date | None = None
    """The last day that can be read, be it due or not."""


@dataclass(frozen=True, slots=True)
class StatusCounts:
    """How many lines there are, by what they say; every value is there, be it with 0.

    A partition counts for each reason for which it is stale.
    """

    displays: Mapping[Display, int]
    availabilities: Mapping[Availability, int]
    reasons: Mapping[StaleCode, int]
    queries: Mapping[AssetName, QueryCounts]

    @property
    def total(self) -> int:
        """How many partitions."""
        return sum(self.displays.values())
