"""The pipeline's own events: their keys, and what a run made of them adds up to."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from sealbook.model import PartitionKey, PartitionState, RunId, Status, Verdict, next_state
from sealbook.model import pipeline_events as say
from sealbook.model.events import EventType, RunEvent
from sealbook.model.pipeline_events import PipelineStep
from sealbook.model.run_fold import fold_all
from sealbook.model.run_snapshot import Counters, RunSnapshot, RunStatus, StepStatus

RUN = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE")
OLDER = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCD")
KEY = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 1))
OTHER = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 2))
NOW = datetime(2026, 1, 2, 6, tzinfo=UTC)
REFERENCE = (Path(__file__).parents[2] / "docs" / "reference" / "events.md").read_text()


def sealed(key: PartitionKey) -> RunEvent:
    return say.partition_sealed(
        key,
        RUN,
        schema_version="1",
        record_count=200,
        payload_bytes=3000,
        payload_sha256="a" * 64,
        query_hash="b" * 64,
        extracted_at=NOW,
    )


def judged(verdict: Verdict, attempt: int) -> RunEvent:
    state = next_state(PartitionState.pending(verdict.key), verdict, NOW)
    return say.partition_judged(verdict, attempt=attempt, state=state)


def accepted(key: PartitionKey) -> Verdict:
    return Verdict.accept(key, RUN, schema_version="1", record_count=200, validator_version="v1")


def rejected(key: PartitionKey) -> Verdict:
    return Verdict.reject(key, RUN, error_message="3 rows have no id", validator_version="v1")


def published(key: PartitionKey, attempt: int = 1, replaced: RunId | None = None) -> RunEvent:
    return say.partition_published(
        key,
        RUN,
        attempt=attempt,
        schema_version="1",
        record_count=200,
        size=900,
        digest="c" * 64,
        location="a/b.parquet",
        replaced_run_id=replaced,
    )


def replay(*events: RunEvent) -> RunSnapshot:
    """Fold events as a store gives them: numbered, and those with a key that it has already left out."""
    distinct: dict[str, RunEvent] = {}
    for event in events:
        distinct.setdefault(event.idempotency_key, event)
    log = [event.stored(seq, NOW) for seq, event in enumerate(distinct.values(), start=1)]
    return fold_all(RunSnapshot.pending(RUN), log)


@pytest.mark.parametrize(
    "event",
    [
        judged(accepted(KEY), 1),
        judged(rejected(KEY), 2),
        judged(replace(rejected(KEY), revalidation_id="again"), 3),
        published(KEY),
        published(KEY, 2, replaced=OLDER),
    ],
    ids=["accepted", "rejected", "revalidated", "loaded", "replaced"],
)
def test_what_is_said_unchecked_is_what_would_be_said_checked(event: RunEvent) -> None:
    """Events that are made without checks, for speed, are the same as with them, texts of the same type."""
    checked = RunEvent.from_json(event.to_json())
    assert event == checked
    assert types_in(event) == types_in(checked)


def types_in(event: RunEvent) -> dict[str, type]:
    values = {field.name: getattr(event, field.name) for field in fields(event)} | dict(event.event_data)
    return {name: type(value) for name, value in values.items()}


def test_a_whole_run_in_three_commands_is_consistent() -> None:
    snapshot = replay(
        say.run_started(RUN, detail={"command": "extract"}),
        say.step_started(RUN, PipelineStep.EXTRACT),
        sealed(KEY),
        sealed(OTHER),
        say.step_completed(RUN, PipelineStep.EXTRACT),
        say.run_started(RUN),
        say.step_started(RUN, PipelineStep.VALIDATE),
        judged(accepted(KEY), 1),
        judged(rejected(OTHER), 1),
        say.step_completed(RUN, PipelineStep.VALIDATE, detail={"accepted": 1}),
        say.step_started(RUN, PipelineStep.LOAD),
        published(KEY),
        say.step_completed(RUN, PipelineStep.LOAD, artifacts=["warehouse/campaign_daily"]),
        say.run_completed(RUN),
        # Long afterwards.
        say.partition_requeued(OTHER, RUN, attempt=1, actor="ada", reason="source is fixed"),
        judged(rejected(KEY), 2),
        say.partition_hidden(KEY, RUN, attempt=2, status=Status.FAILED),
    )
    assert snapshot.inconsistent == ()
    assert snapshot.status is RunStatus.COMPLETED
    assert {step_id: step.status for step_id, step in snapshot.steps.items()} == dict.fromkeys(
        ("extract", "validate", "load"), StepStatus.SUCCESS
    )
    assert snapshot.artifacts == ("warehouse/campaign_daily",)
    assert snapshot.counters == Counters(
        partitions_sealed=2, records_sealed=400, bytes_sealed=6000,
        partitions_accepted=1, partitions_rejected=2,
        partitions_published=1, records_published=200, bytes_published=900,
        partitions_hidden=1, partitions_requeued=1,
    )  # fmt: skip


def test_extraction_that_was_killed_is_resumed_as_a_new_attempt() -> None:
    killed = (
        say.run_started(RUN),
        say.step_started(RUN, PipelineStep.EXTRACT),
        sealed(KEY),
        say.partition_failed(OTHER, RUN, attempt=1, error_class="transient", error="unavailable"),
    )
    attempt = replay(*killed).next_attempt(PipelineStep.EXTRACT)
    snapshot = replay(
        *killed,
        say.run_started(RUN),
        say.step_started(RUN, PipelineStep.EXTRACT, attempt=attempt),
        sealed(KEY),
        say.partition_failed(OTHER, RUN, attempt=attempt, error_class="quota", error="no quota left"),
        say.step_failed(RUN, PipelineStep.EXTRACT, attempt=attempt, error="interrupted"),
        say.run_failed(RUN, error="interrupted"),
    )
    assert snapshot.inconsistent == ()
    assert (snapshot.status, snapshot.error) == (RunStatus.FAILED, "interrupted")
    assert [attempt.status for attempt in snapshot.steps["extract"].attempts] == ["RUNNING", "FAILED"]
    assert (snapshot.counters.partitions_sealed, snapshot.counters.partitions_failed) == (1, 2)


@pytest.mark.parametrize(
    ("event", "step_id", "attempt"),
    [
        (sealed(KEY), f"extract/{KEY}", None),
        (say.partition_failed(KEY, RUN, attempt=3, error_class="quota", error="x"), f"extract/{KEY}", "3"),
        (judged(accepted(KEY), 4), f"validate/{KEY}", "4"),
        (published(KEY, 5), f"load/{KEY}", "5"),
        (say.partition_hidden(KEY, RUN, attempt=6, status=Status.PENDING), f"load/{KEY}", "6"),
        (say.partition_requeued(KEY, RUN, attempt=7, actor="ada", reason="again"), f"control/{KEY}", "7"),
    ],
)
def test_partition_events_name_their_partition_and_attempt(
    event: RunEvent, step_id: str, attempt: str | None
) -> None:
    assert (event.run_id, event.step_id, event.logical_attempt_id) == (RUN, step_id, attempt)
    assert event.event_data["partition"] == str(KEY)
    assert RunEvent.from_json(event.to_json()) == event


def test_events_of_different_partitions_and_attempts_have_different_keys() -> None:
    events = [sealed(KEY), sealed(OTHER), published(KEY), published(OTHER), published(KEY, 2)]
    events += [judged(accepted(KEY), 1), judged(accepted(KEY), 2)]
    assert len({event.idempotency_key for event in events}) == len(events)


def test_judgement_says_what_it_made_of_the_partition() -> None:
    assert judged(accepted(KEY), 1).event_data == {
        "partition": str(KEY),
        "outcome": "accepted",
        "schemaVersion": "1",
        "recordCount": 200,
        "validatorVersion": "v1",
        "status": "success",
        "currentRunId": RUN,
    }
    assert judged(rejected(KEY), 1).event_data == {
        "partition": str(KEY),
        "outcome": "rejected",
        "error": "3 rows have no id",
        "validatorVersion": "v1",
        "status": "failed",
    }


def test_publication_has_its_load_record() -> None:
    assert published(KEY, replaced=OLDER).event_data == {
        "partition": str(KEY),
        "schemaVersion": "1",
        "recordCount": 200,
        "bytes": 900,
        "digest": "c" * 64,
        "location": "a/b.parquet",
        "replacedRunId": OLDER,
    }
    assert "replacedRunId" not in published(KEY).event_data


def test_seal_has_the_words_of_its_metadata() -> None:
    assert sealed(KEY).event_data == {
        "partition": str(KEY),
        "schemaVersion": "1",
        "recordCount": 200,
        "payloadBytes": 3000,
        "payloadSha256": "a" * 64,
        "queryHash": "b" * 64,
        "extractedAt": "2026-01-02T06:00:00Z",
    }


def test_time_of_an_event_can_be_given() -> None:
    assert say.run_started(RUN, emitted_at=NOW).emitted_at == NOW
    assert say.partition_hidden(KEY, RUN, attempt=1, status=Status.FAILED, emitted_at=NOW).emitted_at == NOW


@pytest.mark.parametrize("name", [*EventType, *Counters().by_name()])
def test_reference_page_has_every_event_type_and_counter(name: str) -> None:
    assert re.search(rf"`{name}`", REFERENCE)


def test_reference_page_has_every_field() -> None:
    for name in RunEvent.__dataclass_fields__:
        assert f"| `{name}` |" in REFERENCE
