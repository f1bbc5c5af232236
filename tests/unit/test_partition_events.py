"""The pipeline's own events, typed both ways: their keys, and what a run made of them adds up to."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput, QuotaScope
from sealbook.model import PartitionKey, RunId, Status, Verdict
from sealbook.model.events import EventType, RunEvent
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import (
    FACTS,
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
    read_fact,
)
from sealbook.model.run_fold import fold_all
from sealbook.model.run_snapshot import Counters, RunSnapshot, RunStatus, StepStatus
from sealbook.model.step_events import run_ended, run_started, step_completed, step_failed, step_started
from sealbook.model.verdict import Outcome

RUN = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE")
OLDER = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCD")
KEY = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 1))
OTHER = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 2))
NOW = datetime(2026, 1, 2, 6, tzinfo=UTC)
REFERENCE = (Path(__file__).parents[2] / "docs" / "reference" / "events.md").read_text()


def sealed(key: PartitionKey) -> PartitionSealed:
    return PartitionSealed(
        key=key,
        run_id=RUN,
        schema_version="1",
        record_count=200,
        payload_bytes=3000,
        payload_sha256="a" * 64,
        query_hash="b" * 64,
        extracted_at=NOW,
    )


def failed(key: PartitionKey, attempt: int = 1, stage: Stage = Stage.EXTRACT) -> PartitionFailed:
    return PartitionFailed(
        key=key,
        run_id=RUN,
        attempt=str(attempt),
        failed_stage=stage,
        error_class=ErrorClass.QUOTA,
        error="no quota left",
        retry_after=30.5,
    )


def judged(verdict: Verdict, attempt: int) -> PartitionJudged:
    return PartitionJudged.of(verdict, attempt)


def accepted(key: PartitionKey) -> Verdict:
    return Verdict.accept(
        key, RUN, schema_version="1", record_count=200, validator_version="v1", contract_hash="c1"
    )


def rejected(key: PartitionKey) -> Verdict:
    return Verdict.reject(key, RUN, error_message="3 rows have no id", validator_version="v1")


def published(key: PartitionKey, version: int = 1, replaced: RunId | None = None) -> PartitionPublished:
    return PartitionPublished(
        key=key,
        run_id=RUN,
        attempt=str(version),
        schema_version="1",
        record_count=200,
        bytes=900,
        digest="c" * 64,
        parts=2,
        replaced_run_id=replaced,
    )


def hidden(key: PartitionKey, version: int = 2) -> PartitionHidden:
    return PartitionHidden(key=key, run_id=RUN, attempt=str(version), status=Status.FAILED)


def requeued(key: PartitionKey, override: int = 1) -> PartitionRequeued:
    return PartitionRequeued(key=key, run_id=RUN, attempt=str(override), actor="ada", reason="it is fixed")


def rolled_back(key: PartitionKey, override: int = 2) -> PartitionRolledBack:
    return PartitionRolledBack(
        key=key,
        run_id=OLDER,
        attempt=str(override),
        from_run_id=RUN,
        schema_version="1",
        record_count=190,
        actor="ada",
        reason="the new one is worse",
    )


def cancelled(key: PartitionKey) -> PartitionCancelled:
    return PartitionCancelled(key=key, run_id=RUN, actor="ada", reason="not needed")


EXAMPLES: list[PartitionFact] = [
    sealed(KEY),
    failed(KEY),
    failed(KEY, 2, Stage.LOAD),
    replace(failed(KEY, 3), quota_scope=QuotaScope.SOURCE),
    judged(accepted(KEY), 1),
    judged(rejected(KEY), 2),
    judged(replace(rejected(KEY), revalidation_id="again"), 3),
    published(KEY),
    published(KEY, 2, replaced=OLDER),
    hidden(KEY),
    requeued(KEY),
    rolled_back(KEY),
    cancelled(KEY),
]


def replay(*said: RunEvent | PartitionFact) -> RunSnapshot:
    """Fold events as a store gives them: numbered, and those with a key that it has already left out."""
    distinct: dict[str, RunEvent] = {}
    for each in said:
        event = each.to_event() if isinstance(each, PartitionFact) else each
        distinct.setdefault(event.idempotency_key, event)
    log = [event.stored(seq, NOW) for seq, event in enumerate(distinct.values(), start=1)]
    return fold_all(RunSnapshot.pending(RUN), log)


@pytest.mark.parametrize("fact", EXAMPLES, ids=lambda fact: type(fact).__name__)
def test_every_kind_of_fact_is_read_as_it_was_written(fact: PartitionFact) -> None:
    """R-EVT-11: through the event, and through its JSON."""
    event = fact.to_event()
    assert read_fact(event) == fact
    assert read_fact(RunEvent.from_json(event.to_json())) == fact
    assert event.partition == str(fact.key)
    assert event.step_id == f"{fact.stage}/{fact.key}"


def test_the_examples_are_of_every_kind() -> None:
    assert {type(fact) for fact in EXAMPLES} == set(FACTS)
    assert {kind.event_type for kind in FACTS} == {each for each in EventType if each.startswith("Partition")}


@given(
    record_count=st.integers(0, 2**63 - 1),
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
    moment=st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),  # noqa: DTZ001
    wait=st.none() | st.floats(0, 1e9),
)
def test_any_values_survive_the_log(
    record_count: int, text: str, moment: datetime, wait: float | None
) -> None:
    facts: list[PartitionFact] = [
        replace(sealed(KEY), record_count=record_count, extracted_at=moment),
        replace(failed(KEY), error=text, retry_after=wait),
    ]
    for fact in facts:
        assert read_fact(RunEvent.from_json(fact.to_event().to_json())) == fact


def test_what_a_fact_told_in_earlier_versions_is_passed_over() -> None:
    """Events of the past stay as they are: they spelt the location, which load records have."""
    event = published(KEY).to_event()
    earlier = replace(event, event_data={**event.event_data, "location": "demo/clicks"})
    assert read_fact(earlier) == published(KEY)


def test_events_of_others_tell_no_fact() -> None:
    assert read_fact(run_started(RUN)) is None
    assert read_fact(RunEvent.new(RUN, "SomethingElse", partition=str(KEY))) is None


@pytest.mark.parametrize(
    "change",
    [
        {"partition": None},
        {"partition": "no key"},
        {"event_data": {}},
        {"event_data": [1, 2]},
        {"event_data": {"outcome": "maybe", "validatorVersion": "v1"}},
        {"event_data": {"outcome": "accepted", "validatorVersion": 1}},
        {"event_data": {"outcome": "accepted", "validatorVersion": "v1", "recordCount": True}},
    ],
)
def test_an_event_that_is_no_such_fact_is_refused_by_name(change: dict[str, Any]) -> None:
    """Somebody else may have written it: what is missing or wrong is named, and nothing is guessed."""
    event = replace(judged(accepted(KEY), 1).to_event(), **change)
    with pytest.raises(InvalidInput):
        read_fact(event)


def test_a_judgement_gives_its_verdict_back() -> None:
    for verdict in (accepted(KEY), rejected(KEY)):
        assert judged(verdict, 1).verdict == verdict
        assert judged(verdict, 1).outcome is Outcome(verdict.outcome)


def test_a_whole_run_in_three_commands_is_consistent() -> None:
    snapshot = replay(
        run_started(RUN),
        step_started(RUN, Stage.EXTRACT),
        sealed(KEY),
        sealed(OTHER),
        step_completed(RUN, Stage.EXTRACT),
        run_started(RUN),
        step_started(RUN, Stage.VALIDATE),
        judged(accepted(KEY), 1),
        judged(rejected(OTHER), 1),
        step_completed(RUN, Stage.VALIDATE),
        step_started(RUN, Stage.LOAD),
        published(KEY),
        step_completed(RUN, Stage.LOAD),
        run_ended(RUN, RunStatus.COMPLETED),
        # Long afterwards.
        requeued(OTHER),
        judged(rejected(KEY), 2),
        hidden(KEY),
    )
    assert snapshot.inconsistent == ()
    assert snapshot.status is RunStatus.COMPLETED
    assert {step_id: step.status for step_id, step in snapshot.steps.items()} == dict.fromkeys(
        ("extract", "validate", "load"), StepStatus.SUCCESS
    )
    assert snapshot.counters == Counters(
        partitions_sealed=2, records_sealed=400, bytes_sealed=6000,
        partitions_accepted=1, partitions_rejected=2,
        partitions_published=1, records_published=200, bytes_published=900,
        partitions_hidden=1, partitions_requeued=1,
    )  # fmt: skip


def test_extraction_that_was_killed_is_resumed_as_a_new_attempt() -> None:
    killed = (run_started(RUN), step_started(RUN, Stage.EXTRACT), sealed(KEY), failed(OTHER, 1))
    attempt = replay(*killed).next_attempt(Stage.EXTRACT)
    snapshot = replay(
        *killed,
        run_started(RUN),
        step_started(RUN, Stage.EXTRACT, attempt=attempt),
        sealed(KEY),
        failed(OTHER, attempt),
        step_failed(RUN, Stage.EXTRACT, attempt=attempt, error="interrupted"),
        run_ended(RUN, RunStatus.FAILED, error="interrupted"),
    )
    assert snapshot.inconsistent == ()
    assert (snapshot.status, snapshot.error) == (RunStatus.FAILED, "interrupted")
    assert [attempt.status for attempt in snapshot.steps["extract"].attempts] == ["RUNNING", "FAILED"]
    assert (snapshot.counters.partitions_sealed, snapshot.counters.partitions_failed) == (1, 2)


def test_facts_of_different_partitions_and_attempts_have_different_keys() -> None:
    facts: list[PartitionFact] = [
        sealed(KEY),
        sealed(OTHER),
        published(KEY),
        published(OTHER),
        published(KEY, 2),
    ]
    facts += [judged(accepted(KEY), 1), judged(accepted(KEY), 2)]
    assert len({fact.to_event().idempotency_key for fact in facts}) == len(facts)


def test_what_the_data_of_facts_says() -> None:
    """By camelCase names; what is not there is left out, and the partition is in a field of its own."""
    assert judged(accepted(KEY), 1).to_event().event_data == {
        "outcome": "accepted",
        "schemaVersion": "1",
        "recordCount": 200,
        "validatorVersion": "v1",
        "contractHash": "c1",
    }
    assert judged(rejected(KEY), 1).to_event().event_data == {
        "outcome": "rejected",
        "error": "3 rows have no id",
        "validatorVersion": "v1",
    }
    assert published(KEY, replaced=OLDER).to_event().event_data == {
        "schemaVersion": "1",
        "recordCount": 200,
        "bytes": 900,
        "digest": "c" * 64,
        "parts": 2,
        "replacedRunId": OLDER,
    }
    assert sealed(KEY).to_event().event_data == {
        "schemaVersion": "1",
        "recordCount": 200,
        "payloadBytes": 3000,
        "payloadSha256": "a" * 64,
        "queryHash": "b" * 64,
        "extractedAt": "2026-01-02T06:00:00Z",
    }
    assert failed(KEY).to_event().event_data == {
        "failedStage": "extract",
        "errorClass": "quota",
        "error": "no quota left",
        "retryAfter": 30.5,
    }


def test_time_of_an_event_can_be_given() -> None:
    assert hidden(KEY).to_event(NOW + timedelta(days=1)).emitted_at == NOW + timedelta(days=1)


@pytest.mark.parametrize("name", [*EventType, *Counters().by_name()])
def test_reference_page_has_every_event_type_and_counter(name: str) -> None:
    assert re.search(rf"`{name}`", REFERENCE)


def test_reference_page_has_every_field() -> None:
    for name in RunEvent.__dataclass_fields__:
        assert f"| `{name}` |" in REFERENCE
