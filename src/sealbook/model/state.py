"""The state of a partition, and the whole table of its legal moves (R-STATE-3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple

from sealbook.errors import IllegalMove
from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.verdict import Verdict


class Status(StrEnum):
    """Whether a partition is safe to consume."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"


class PartitionState(NamedTuple):
    """One row of the state ledger, in the columns of the v1 contract.

    A named tuple: a million of them come out of a database, and nothing else is made of a row as quickly.
    """

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    status: Status
    current_run_id: RunId | None
    schema_version: str | None
    record_count: int | None
    updated_at: datetime | None
    error_message: str | None
    attempt_count: int

    @classmethod
    def pending(cls, key: PartitionKey) -> PartitionState:
        """Return the state of a key that has no row (R-STATE-1)."""
        return cls(
            key.source, key.customer_id, key.query_name, key.logical_date,
            status=Status.PENDING,
            current_run_id=None,
            schema_version=None,
            record_count=None,
            updated_at=None,
            error_message=None,
            attempt_count=0,
        )  # fmt: skip

    @property
    def key(self) -> PartitionKey:
        """The partition that this is the state of."""
        return PartitionKey(self.source, self.customer_id, self.query_name, self.logical_date)


@dataclass(frozen=True, slots=True)
class Requeue:
    """A control action: try a failed partition again."""


@dataclass(frozen=True, slots=True)
class Reprocess:
    """A control action: schedule a new attempt and leave the state as it is."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """A control action: give authority to another accepted run, and hold it there (R-STATE-9).

    `newest_run_id` is the newest run that the partition has by then: no run up to it takes authority by
    itself any more. A rollback from before that was recorded holds nothing.
    """

    run_id: RunId
    schema_version: str
    record_count: int
    newest_run_id: RunId | None


Move = Verdict | Requeue | Reprocess | Rollback


def next_state(state: PartitionState, move: Move, at: datetime, hold: RunId | None = None) -> PartitionState:
    """Return the state after a move made at a time, or raise IllegalMove: the table of R-STATE-3.

    `hold` is what rollbacks so far hold authority against: only a run that is newer takes it by itself.
    """
    match move:
        case Verdict(accepted=True):
            return _accepted(state, move, at, hold)
        case Verdict():
            return _rejected(state, move, at)
        case Requeue() if state.status is Status.FAILED:
            return state._replace(status=Status.PENDING, error_message=None, updated_at=at)
        case Reprocess() if state.status is not Status.PENDING:
            return state
        case Rollback() if (
            state.status is not Status.PENDING
            and state.current_run_id is not None
            and move.run_id != state.current_run_id
            and move.schema_version == state.schema_version
        ):
            return state._replace(
                status=Status.SUCCESS,
                current_run_id=move.run_id,
                record_count=move.record_count,
                error_message=None,
                updated_at=at,
            )
    raise IllegalMove(_why_illegal(state, move), remedy="`sealbook state inspect` shows the state.")


def next_hold(hold: RunId | None, rollback: Rollback) -> RunId | None:
    """Return what authority is held against after a rollback: every run that the partition had by then."""
    return max(filter(None, (hold, rollback.newest_run_id)), default=None)


def _accepted(state: PartitionState, verdict: Verdict, at: datetime, hold: RunId | None) -> PartitionState:
    current = state.current_run_id
    if state.status is Status.SUCCESS and current is not None and verdict.run_id < current:
        return _attempted(state, at)  # authority never moves back by itself
    if hold is not None and verdict.run_id <= hold and verdict.run_id != current:
        return _attempted(state, at)  # nor to where an operator took it from
    return state._replace(
        status=Status.SUCCESS,
        current_run_id=verdict.run_id,
        schema_version=verdict.schema_version,
        record_count=verdict.record_count,
        error_message=None,
        attempt_count=state.attempt_count + 1,
        updated_at=at,
    )


def _rejected(state: PartitionState, verdict: Verdict, at: datetime) -> PartitionState:
    if state.status is Status.SUCCESS and verdict.run_id != state.current_run_id:
        return _attempted(state, at)  # a failed reprocessing leaves the good run alone
    return _attempted(state, at)._replace(status=Status.FAILED, error_message=verdict.error_message)


def _attempted(state: PartitionState, at: datetime) -> PartitionState:
    return state._replace(attempt_count=state.attempt_count + 1, updated_at=at)


def _why_illegal(state: PartitionState, move: Move) -> str:
    match move:
        case Rollback() if state.status is Status.PENDING:
            return f"{state.key} is pending; only a success or a failed partition can be rolled back"
        case Rollback():
            return (
                f"{state.key} cannot be rolled back from run {state.current_run_id}"
                f" (schema_version {state.schema_version}) to run {move.run_id}"
                f" (schema_version {move.schema_version}): only to another run of the same schema_version"
            )
        case Reprocess():
            return f"{state.key} is pending; it waits for an attempt already"
    return f"{state.key} is {state.status}; only a failed partition can be requeued"
