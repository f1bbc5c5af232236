"""A row of partition_status, and how facts change it: the higher version wins (R-PST-2)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from ulid import ULID

from sealbook.ledger.db.types import microseconds
from sealbook.ledger.events.port import FeedEvent
from sealbook.model.events import EventType
from sealbook.model.partition_events import Stage
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.verdict import Outcome


class Told(NamedTuple):
    """What an event says of a partition: when, at which position, in which run, and how an attempt ended."""

    version: int
    at: int
    run: int
    outcome: str | None
    stage: str | None

    @classmethod
    def of(cls, each: FeedEvent, run: int) -> Told:
        """Read an event that tells a fact; `run` is the number of its run."""
        outcome, stage = _ended(each)
        return cls(each.position, microseconds(_persisted_at(each)), run, outcome, stage)


class StatusRow(NamedTuple):
    """A row, in the order of the columns."""

    series_id: int
    day: int
    availability: str = Availability.NONE.value
    materialized_at: int | None = None
    attempt_at: int | None = None
    attempt_outcome: str | None = None
    attempt_stage: str | None = None
    validator_id: int | None = None
    materialized_run: int | None = None
    attempt_run: int | None = None
    materialized_version: int | None = None
    attempt_version: int | None = None
    changed_at: int = 0
    changed_version: int = 0
    stale_since: int | None = None
    stale_reason: str | None = None

    def after(self, told: Told) -> StatusRow:
        """Return the row after an event, which may come late or again."""
        changes: dict[str, Any] = {}
        if told.outcome is not None and told.version > (self.attempt_version or 0):
            changes |= {
                "attempt_run": told.run,
                "attempt_at": told.at,
                "attempt_outcome": told.outcome,
                "attempt_stage": told.stage,
                "attempt_version": told.version,
            }
        if told.outcome == _SUCCEEDED and told.version > (self.materialized_version or 0):
            changes |= {
                "materialized_run": told.run,
                "materialized_at": told.at,
                "materialized_version": told.version,
                "stale_since": None,  # what a sweep found is of the materialization before (R-PST-7)
                "stale_reason": None,
            }
        if told.version > self.changed_version:
            changes |= {"changed_at": told.at, "changed_version": told.version}
        return self._replace(**changes) if changes else self


CHANGING = StatusRow._fields[2:]
"""The columns that a change may concern: all but the primary key."""

_STAGES = frozenset(stage.value for stage in Stage)
_SUCCEEDED = AttemptOutcome.SUCCEEDED.value
_PLAIN = {
    EventType.PARTITION_PUBLISHED.value: (_SUCCEEDED, None),
    EventType.PARTITION_CANCELLED.value: (AttemptOutcome.CANCELLED.value, None),
}


def row_version(changed_at: int, changed_version: int) -> str:
    """Return the ULID of a row's last change: of its time, and then of its place among all changes."""
    milliseconds, rest = divmod(changed_at, 1_000)
    return str(ULID.from_int(milliseconds << 80 | rest << 64 | changed_version))


def _ended(each: FeedEvent) -> tuple[str | None, str | None]:
    """Return how an attempt ended by an event, and at which stage if it failed; None if none did."""
    kind, data = each.event.event_type, each.event.event_data
    if kind in _PLAIN:
        return _PLAIN[kind]
    members = data if isinstance(data, dict) else {}
    if kind == EventType.PARTITION_FAILED:
        stage = members.get("failedStage")
        return AttemptOutcome.FAILED.value, stage if stage in _STAGES else None
    if kind == EventType.PARTITION_JUDGED and members.get("outcome") == Outcome.REJECTED:
        return AttemptOutcome.FAILED.value, Stage.VALIDATE.value
    return None, None


def _persisted_at(each: FeedEvent) -> datetime:
    if each.event.persisted_at is None:
        raise AssertionError("what comes from a feed was stored")
    return each.event.persisted_at
