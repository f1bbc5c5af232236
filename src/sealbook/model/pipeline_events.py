"""The events that Sealbook's own pipeline says: one function for each, so that all commands say them alike.

A run has the steps `extract`, `validate` and `load`. A Partition… event names its partition in its step id,
as in `extract/google_ads/1234567890/campaign_daily/2026-01-01`, so that each partition has idempotency keys
of its own. Its attempt is the partition's `attempt_count` at that moment, except in extraction, which comes
before any attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from sealbook.model.events import EventType, RunEvent
from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.state import PartitionState, Status
from sealbook.model.verdict import Verdict
from sealbook.model.wire import as_utc, format_time

_plain = str.__str__  # the text alone of a RunId or a StrEnum, and quicker than `.value`
_NO_DETAIL: Mapping[str, object] = MappingProxyType({})


class PipelineStep(StrEnum):
    """The steps of a run, and `control` for what an operator or the control loop does to its partitions."""

    EXTRACT = "extract"
    VALIDATE = "validate"
    LOAD = "load"
    CONTROL = "control"


def run_started(
    run_id: RunId, *, detail: Mapping[str, object] = _NO_DETAIL, emitted_at: datetime | None = None
) -> RunEvent:
    """Say that a run began; each command that opens a step may say so, and the first one counts."""
    return RunEvent.new(run_id, EventType.RUN_STARTED, event_data=detail, emitted_at=emitted_at)


def run_completed(
    run_id: RunId,
    *,
    artifacts: Iterable[object] = (),
    detail: Mapping[str, object] = _NO_DETAIL,
    emitted_at: datetime | None = None,
) -> RunEvent:
    """Say that a run came to its end: what it could publish is published."""
    data = {**detail, "artifacts": list(artifacts)}
    return RunEvent.new(run_id, EventType.RUN_COMPLETED, event_data=data, emitted_at=emitted_at)


def run_failed(run_id: RunId, *, error: str, emitted_at: datetime | None = None) -> RunEvent:
    """Say that a run ended with nothing to publish."""
    return RunEvent.new(run_id, EventType.RUN_FAILED, event_data={"error": error}, emitted_at=emitted_at)


def step_started(
    run_id: RunId,
    step: PipelineStep,
    *,
    attempt: int = 1,
    detail: Mapping[str, object] = _NO_DETAIL,
    emitted_at: datetime | None = None,
) -> RunEvent:
    """Say that an attempt of a step began; `RunSnapshot.next_attempt` has its number."""
    return RunEvent.new(
        run_id, EventType.STEP_STARTED, step, attempt, event_data=detail, emitted_at=emitted_at
    )


def step_completed(
    run_id: RunId,
    step: PipelineStep,
    *,
    attempt: int = 1,
    artifacts: Iterable[object] = (),
    detail: Mapping[str, object] = _NO_DETAIL,
    emitted_at: datetime | None = None,
) -> RunEvent:
    """Say that an attempt of a step did its work; `artifacts` are a few references, never one a partition."""
    data = {**detail, "artifacts": list(artifacts)}
    return RunEvent.new(
        run_id, EventType.STEP_COMPLETED, step, attempt, event_data=data, emitted_at=emitted_at
    )


def step_failed(
    run_id: RunId, step: PipelineStep, *, attempt: int = 1, error: str, emitted_at: datetime | None = None
) -> RunEvent:
    """Say that an attempt of a step broke off."""
    return RunEvent.new(
        run_id, EventType.STEP_FAILED, step, attempt, event_data={"error": error}, emitted_at=emitted_at
    )


def partition_sealed(
    key: PartitionKey,
    run_id: RunId,
    *,
    schema_version: str,
    record_count: int,
    payload_bytes: int,
    payload_sha256: str,
    query_hash: str,
    extracted_at: datetime,
    emitted_at: datetime | None = None,
) -> RunEvent:
    """Say that a raw partition is sealed, in the words of its metadata.

    A run seals a partition once, so the event has no attempt: a resumed extraction may say it again for
    everything that it finds sealed, and nothing is counted twice.
    """
    data = {
        "partition": str(key),
        "schemaVersion": schema_version,
        "recordCount": record_count,
        "payloadBytes": payload_bytes,
        "payloadSha256": payload_sha256,
        "queryHash": query_hash,
        "extractedAt": format_time(as_utc("extracted_at", extracted_at)),
    }
    step_id = _step_id(PipelineStep.EXTRACT, key)
    return RunEvent.new(run_id, EventType.PARTITION_SEALED, step_id, event_data=data, emitted_at=emitted_at)


def partition_failed(
    key: PartitionKey,
    run_id: RunId,
    *,
    attempt: int,
    error_class: str,
    error: str,
    emitted_at: datetime | None = None,
) -> RunEvent:
    """Say that a partition could not be extracted; `attempt` is that of the `extract` step."""
    data = {"partition": str(key), "errorClass": error_class, "error": error}
    return RunEvent.new(
        run_id,
        EventType.PARTITION_FAILED,
        _step_id(PipelineStep.EXTRACT, key),
        attempt,
        event_data=data,
        emitted_at=emitted_at,
    )


def partition_judged(
    verdict: Verdict, *, attempt: int, state: PartitionState, emitted_at: datetime | None = None
) -> RunEvent:
    """Say what a verdict made of a partition: its attempt number, and the state after it.

    The checks stay with the attempt in the ledger; the event is what others need to follow along.
    """
    partition, current_run_id = str(verdict.key), state.current_run_id
    data = {
        "partition": partition,
        "outcome": _plain(verdict.outcome),
        "schemaVersion": verdict.schema_version,
        "recordCount": verdict.record_count,
        "error": verdict.error_message,
        "validatorVersion": verdict.validator_version,
        "revalidationId": verdict.revalidation_id,
        "status": _plain(state.status),
        "currentRunId": None if current_run_id is None else _plain(current_run_id),
    }
    return RunEvent.trusted(
        verdict.run_id,
        EventType.PARTITION_JUDGED,
        _step_id(PipelineStep.VALIDATE, partition),
        attempt,
        {name: value for name, value in data.items() if value is not None},
        emitted_at,
    )


def partition_published(
    key: PartitionKey,
    run_id: RunId,
    *,
    attempt: int,
    schema_version: str,
    record_count: int,
    size: int,
    digest: str,
    location: str,
    replaced_run_id: RunId | None = None,
    emitted_at: datetime | None = None,
) -> RunEvent:
    """Say that the pointer of a partition now names this run, with its load record."""
    partition = str(key)
    data: dict[str, object] = {
        "partition": partition,
        "schemaVersion": schema_version,
        "recordCount": record_count,
        "bytes": size,
        "digest": digest,
        "location": location,
    }
    if replaced_run_id is not None:
        data["replacedRunId"] = _plain(replaced_run_id)
    return RunEvent.trusted(
        run_id,
        EventType.PARTITION_PUBLISHED,
        _step_id(PipelineStep.LOAD, partition),
        attempt,
        data,
        emitted_at,
    )


def partition_hidden(
    key: PartitionKey, run_id: RunId, *, attempt: int, status: Status, emitted_at: datetime | None = None
) -> RunEvent:
    """Say that the run published for a partition is hidden, because the state became `status`."""
    return RunEvent.new(
        run_id,
        EventType.PARTITION_HIDDEN,
        _step_id(PipelineStep.LOAD, key),
        attempt,
        event_data={"partition": str(key), "status": status},
        emitted_at=emitted_at,
    )


def partition_requeued(
    key: PartitionKey,
    run_id: RunId,
    *,
    attempt: int,
    actor: str,
    reason: str,
    emitted_at: datetime | None = None,
) -> RunEvent:
    """Say that a failed partition is to be tried again; `run_id` is the run of its last attempt.

    A failed partition always has an attempt, though it may have no current run.
    """
    return RunEvent.new(
        run_id,
        EventType.PARTITION_REQUEUED,
        _step_id(PipelineStep.CONTROL, key),
        attempt,
        event_data={"partition": str(key), "actor": actor, "reason": reason},
        emitted_at=emitted_at,
    )


def _step_id(step: PipelineStep, partition: PartitionKey | str) -> str:
    return f"{step}/{partition}"
