"""Partition status: when a partition was last materialized, apart from how the last attempt at it went.

Each group of columns carries a version, the position in the feed of the event that it is from. The higher one
wins: any order of arrival, with any duplicates, ends in the same row (R-PST-2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.partition_events import (
    PartitionCancelled,
    PartitionFact,
    PartitionFailed,
    PartitionJudged,
    PartitionPublished,
    Stage,
)
from sealbook.model.verdict import Outcome


class AttemptOutcome(StrEnum):
    """How an attempt at a partition ended."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Availability(StrEnum):
    """What consumers get of a partition: its newest run, an older one, nothing any more, or nothing yet."""

    PUBLISHED = "published"
    BEHIND = "behind"
    HIDDEN = "hidden"
    NONE = "none"

    @property
    def readable(self) -> bool:
        """Whether consumers get rows."""
        return self in (Availability.PUBLISHED, Availability.BEHIND)


@dataclass(frozen=True, slots=True)
class LastAttempt:
    """The latest attempt at a partition that has ended, however it did."""

    run_id: RunId
    at: datetime
    outcome: AttemptOutcome
    version: int
    stage: Stage | None = None
    """Where a FAILED one failed."""


@dataclass(frozen=True, slots=True)
class Materialization:
    """The latest moment from which on consumers could read a run of a partition."""

    run_id: RunId
    at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The latest judgement that accepted a run, by the hash of its contract; None if none was recorded."""

    contract_hash: str | None
    version: int


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """What the facts about a partition add up to (ADR-026)."""

    key: PartitionKey
    attempt: LastAttempt | None = None
    materialization: Materialization | None = None
    accepted: Mapping[RunId, Acceptance] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def code_version(self) -> str | None:
        """The contract by which what is materialized was accepted last; None if it is not known."""
        if self.materialization is None:
            return None
        acceptance = self.accepted.get(self.materialization.run_id)
        return None if acceptance is None else acceptance.contract_hash

    def record_attempt(self, attempt: LastAttempt) -> PartitionStatus:
        """Return the status after an attempt has ended, unless a later one has."""
        if self.attempt is not None and self.attempt.version >= attempt.version:
            return self
        return replace(self, attempt=attempt)

    def mark_materialized(self, materialization: Materialization) -> PartitionStatus:
        """Return the status after a publication, unless there was a later one."""
        if self.materialization is not None and self.materialization.version >= materialization.version:
            return self
        return replace(self, materialization=materialization)

    def mark_accepted(self, run_id: RunId, acceptance: Acceptance) -> PartitionStatus:
        """Return the status after a run was accepted: a re-validation renews the code version (R-PST-2)."""
        known = self.accepted.get(run_id)
        if known is not None and known.version >= acceptance.version:
            return self
        return replace(self, accepted=MappingProxyType({**self.accepted, run_id: acceptance}))


def fold_status(status: PartitionStatus, fact: PartitionFact, at: datetime, version: int) -> PartitionStatus:
    """Return the status after one more fact, which the log wrote at a time and a position (its version)."""

    def attempted(outcome: AttemptOutcome, stage: Stage | None = None) -> PartitionStatus:
        return status.record_attempt(LastAttempt(fact.run_id, at, outcome, version, stage))

    match fact:
        case PartitionPublished():
            materialized = Materialization(fact.run_id, at, version)
            return attempted(AttemptOutcome.SUCCEEDED).mark_materialized(materialized)
        case PartitionJudged(outcome=Outcome.REJECTED) | PartitionFailed():
            return attempted(AttemptOutcome.FAILED, fact.stage)
        case PartitionJudged():
            return status.mark_accepted(fact.run_id, Acceptance(fact.contract_hash, version))
        case PartitionCancelled():
            return attempted(AttemptOutcome.CANCELLED)
    return status
