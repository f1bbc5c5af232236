"""The events of a run and its steps that Sealbook's own pipeline appends: one function for each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sealbook.model.events import EventType, RunEvent
from sealbook.model.keys import RunId
from sealbook.model.partition_events import Stage
from sealbook.model.run_snapshot import RunStatus

_NO_DETAIL: Mapping[str, object] = MappingProxyType({})

_ENDS = {
    RunStatus.COMPLETED: EventType.RUN_COMPLETED,
    RunStatus.FAILED: EventType.RUN_FAILED,
    RunStatus.CANCELLED: EventType.RUN_CANCELLED,
}


def run_queued(run_id: RunId) -> RunEvent:
    """Say that a run was opened; nothing has been done of it yet."""
    return RunEvent.new(run_id, EventType.RUN_QUEUED)


def run_started(run_id: RunId) -> RunEvent:
    """Say that a run began; each command that opens a step may say so, and the first one counts."""
    return RunEvent.new(run_id, EventType.RUN_STARTED)


def run_ended(run_id: RunId, status: RunStatus, *, error: str | None = None) -> RunEvent:
    """Say that a run came to its end, and why it did not come to a good one."""
    return RunEvent.new(run_id, _ENDS[status], event_data={} if error is None else {"error": error})


def step_started(
    run_id: RunId, stage: Stage, *, attempt: int = 1, detail: Mapping[str, object] = _NO_DETAIL
) -> RunEvent:
    """Say that an attempt of a step began; `RunSnapshot.next_attempt` has its number."""
    return RunEvent.new(run_id, EventType.STEP_STARTED, stage, attempt, event_data=detail)


def step_completed(run_id: RunId, stage: Stage, *, attempt: int = 1) -> RunEvent:
    """Say that an attempt of a step did its work."""
    return RunEvent.new(run_id, EventType.STEP_COMPLETED, stage, attempt)


def step_failed(run_id: str, step_id: str, *, attempt: int | str = 1, error: str) -> RunEvent:
    """Say that an attempt of a step broke off."""
    return RunEvent.new(run_id, EventType.STEP_FAILED, step_id, attempt, event_data={"error": error})
