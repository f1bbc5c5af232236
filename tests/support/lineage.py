"""Runs through all stages as the log tells them, without Spark; and what every OpenLineage event has."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sealbook.ledger import Ledger
from sealbook.model import Check, PartitionKey, RunId, Verdict
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, PartitionSealed, Stage
from sealbook.model.selection import Selection
from tests.support.pointers import load

CHECKS = (Check("columns", passed=True), Check("clicks_not_negative", passed=False, violations=3, lines=(1,)))


def sealed(key: PartitionKey, run_id: RunId, records: int = 10) -> PartitionSealed:
    """Return the fact that a partition is sealed."""
    return PartitionSealed(
        key=key,
        run_id=run_id,
        schema_version="1",
        record_count=records,
        payload_bytes=100,
        payload_sha256="0" * 64,
        query_hash="1" * 64,
        extracted_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def judged(key: PartitionKey, run_id: RunId, *, good: bool) -> Verdict:
    """Return a verdict with evidence."""
    if good:
        return Verdict.accept(
            key, run_id, schema_version="1", record_count=10, validator_version="v1", checks=CHECKS[:1]
        )
    return Verdict.reject(key, run_id, error_message="bad", validator_version="v1", checks=CHECKS)


def go_through(ledger: Ledger, good: Iterable[PartitionKey], bad: Iterable[PartitionKey] = ()) -> RunId:
    """Take partitions the whole way as one run, in which the bad ones are rejected; return it, ended."""
    good, bad = list(good), list(bad)
    run_id = ledger.open_run()
    attempts = ledger.runs.open_steps(Stage.EXTRACT, [run_id], [Selection(keys=[*good, *bad])])
    ledger.runs.tell(sealed(key, run_id) for key in (*good, *bad))
    ledger.runs.close_steps(Stage.EXTRACT, attempts)
    attempts = ledger.runs.open_steps(Stage.VALIDATE, [run_id])
    ledger.judge([judged(key, run_id, good=key in good) for key in (*good, *bad)])
    ledger.runs.close_steps(Stage.VALIDATE, attempts)
    attempts = ledger.runs.open_steps(Stage.LOAD, [run_id])
    load(ledger)
    ledger.runs.close_steps(Stage.LOAD, attempts)
    ledger.runs.end_runs([run_id])
    return run_id


def break_off(ledger: Ledger, key: PartitionKey) -> RunId:
    """Extract a partition in vain, and break the step off; the run is left as it is."""
    run_id = ledger.open_run()
    attempts = ledger.runs.open_steps(Stage.EXTRACT, [run_id], [Selection(keys=[key])])
    failed = PartitionFailed(
        key=key,
        run_id=run_id,
        attempt="1",
        failed_stage=Stage.EXTRACT,
        error_class=ErrorClass.TRANSIENT,
        error="no answer",
    )
    ledger.runs.tell([failed])
    ledger.runs.close_steps(Stage.EXTRACT, attempts, "the disk is full")
    return run_id


def check_event(event: dict[str, Any]) -> None:
    """Hold an event against what the specification requires of a RunEvent and of each facet."""
    assert {"eventType", "eventTime", "run", "job", "inputs", "outputs", "producer", "schemaURL"} == set(
        event
    )
    assert event["eventType"] in ("START", "COMPLETE", "FAIL", "ABORT")
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert UUID(event["run"]["runId"]).version in (5, 7)
    assert event["schemaURL"].startswith("https://openlineage.io/spec/")
    assert event["producer"].startswith("urn:sealbook:")
    datasets = [*event["inputs"], *event["outputs"]]
    named = [event["job"], *datasets]
    assert all(each["namespace"] and each["name"] for each in named)
    groups = [event["run"]["facets"], event["job"]["facets"]]
    groups += [each.get(kind, {}) for each in datasets for kind in ("facets", "inputFacets", "outputFacets")]
    for facet in (facet for group in groups for facet in group.values()):
        assert facet["_producer"] == event["producer"]
        assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")
