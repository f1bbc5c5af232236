"""Facts about one partition, in few words."""

from __future__ import annotations

from datetime import UTC, datetime

from sealbook.model import Outcome
from sealbook.model.failures import ErrorClass
from sealbook.model.keys import PartitionKey
from sealbook.model.partition_events import (
    PartitionCancelled,
    PartitionFailed,
    PartitionHidden,
    PartitionJudged,
    PartitionPublished,
    PartitionRequeued,
    PartitionRolledBack,
    PartitionSealed,
    Stage,
)
from sealbook.model.state import Status
from tests.support.ledger import KEY, run_id

CONTRACT = "contract-1"


def sealed(run: int, key: PartitionKey = KEY) -> PartitionSealed:
    return PartitionSealed(
        key=key,
        run_id=run_id(run),
        schema_version="1",
        record_count=10,
        payload_bytes=100,
        payload_sha256="0" * 64,
        query_hash="query",
        extracted_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


def failed(
    run: int,
    error_class: ErrorClass = ErrorClass.TRANSIENT,
    stage: Stage = Stage.EXTRACT,
    retry_after: float | None = None,
    key: PartitionKey = KEY,
) -> PartitionFailed:
    return PartitionFailed(
        key=key,
        run_id=run_id(run),
        failed_stage=stage,
        error_class=error_class,
        error=f"{stage} failed",
        retry_after=retry_after,
    )


def judged(
    run: int, outcome: Outcome, *, again: str | None = None, key: PartitionKey = KEY
) -> PartitionJudged:
    accepted = outcome is Outcome.ACCEPTED
    return PartitionJudged(
        key=key,
        run_id=run_id(run),
        outcome=outcome,
        validator_version="v1",
        contract_hash=CONTRACT,
        schema_version="1" if accepted else None,
        record_count=10 if accepted else None,
        error=None if accepted else "bad rows",
        revalidation_id=again,
    )


def accepted(run: int, *, again: str | None = None, key: PartitionKey = KEY) -> PartitionJudged:
    return judged(run, Outcome.ACCEPTED, again=again, key=key)


def rejected(run: int, *, again: str | None = None, key: PartitionKey = KEY) -> PartitionJudged:
    return judged(run, Outcome.REJECTED, again=again, key=key)


def published(run: int, key: PartitionKey = KEY) -> PartitionPublished:
    return PartitionPublished(
        key=key,
        run_id=run_id(run),
        schema_version="1",
        record_count=10,
        bytes=100,
        digest="digest",
    )


def hidden(run: int, key: PartitionKey = KEY) -> PartitionHidden:
    return PartitionHidden(key=key, run_id=run_id(run), status=Status.FAILED)


def requeued(run: int, key: PartitionKey = KEY) -> PartitionRequeued:
    return PartitionRequeued(key=key, run_id=run_id(run), actor="ann", reason="again")


def rolled_back(run: int, before: int, newest: int, key: PartitionKey = KEY) -> PartitionRolledBack:
    return PartitionRolledBack(
        key=key,
        run_id=run_id(run),
        from_run_id=run_id(before),
        schema_version="1",
        record_count=10,
        actor="ann",
        reason="bad rows",
        newest_run_id=run_id(newest),
    )


def cancelled(run: int, key: PartitionKey = KEY) -> PartitionCancelled:
    return PartitionCancelled(key=key, run_id=run_id(run), actor="ann", reason="stopped")
