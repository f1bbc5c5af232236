"""Facts about one partition at given times, and the status that they add up to."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import (
    PartitionCancelled,
    PartitionFact,
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
from sealbook.model.status import PartitionStatus, fold_status
from sealbook.model.verdict import Outcome
from tests.support.ledger import KEY, run_id

START = datetime(2026, 1, 2, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Logged(NamedTuple):
    """A fact as the log has it: when it was written, and at which position of the feed."""

    fact: PartitionFact
    at: datetime
    position: int


def log(*facts: PartitionFact) -> list[Logged]:
    """Log facts an hour apart, the first one an hour after START."""
    return [Logged(fact, START + number * HOUR, number) for number, fact in enumerate(facts, start=1)]


def status_of(logged: Iterable[Logged]) -> PartitionStatus:
    """Fold what is logged, in the order given."""
    status = PartitionStatus(KEY)
    for each in logged:
        status = fold_status(status, *each)
    return status


def sealed(run: int = 1) -> PartitionFact:
    return PartitionSealed(
        key=KEY, run_id=run_id(run), schema_version="1", record_count=1, payload_bytes=1,
        payload_sha256="a" * 64, query_hash="b" * 64, extracted_at=START,
    )  # fmt: skip


def failed(run: int = 1, stage: Stage = Stage.EXTRACT) -> PartitionFact:
    return PartitionFailed(
        key=KEY, run_id=run_id(run), attempt="1", failed_stage=stage,
        error_class=ErrorClass.PERMANENT, error="refused",
    )  # fmt: skip


def judged(run: int = 1, outcome: Outcome = Outcome.ACCEPTED, contract: str | None = "one") -> PartitionFact:
    return PartitionJudged(
        key=KEY,
        run_id=run_id(run),
        attempt="1",
        outcome=outcome,
        validator_version="v",
        contract_hash=contract,
    )


def rejected(run: int = 1) -> PartitionFact:
    return judged(run, Outcome.REJECTED)


def published(run: int = 1) -> PartitionFact:
    return PartitionPublished(
        key=KEY, run_id=run_id(run), attempt="1", schema_version="1", record_count=1, bytes=1,
        digest="c" * 64,
    )  # fmt: skip


def hidden(run: int = 1) -> PartitionFact:
    return PartitionHidden(key=KEY, run_id=run_id(run), attempt="2", status=Status.FAILED)


def cancelled(run: int = 1) -> PartitionFact:
    return PartitionCancelled(key=KEY, run_id=run_id(run), actor="ann", reason="wrong day")


def requeued(run: int = 1) -> PartitionFact:
    return PartitionRequeued(key=KEY, run_id=run_id(run), attempt="1", actor="ann", reason="again")


def rolled_back(run: int, from_run: int) -> PartitionFact:
    return PartitionRolledBack(
        key=KEY, run_id=run_id(run), attempt="1", from_run_id=run_id(from_run), schema_version="1",
        record_count=1, actor="ann", reason="worse", newest_run_id=run_id(from_run),
    )  # fmt: skip
