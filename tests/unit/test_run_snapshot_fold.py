"""The fold: which events are legal when, and what each changes (R-EVT-6)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from sealbook.errors import InvalidInput
from sealbook.model.events import EventType, RunEvent
from sealbook.model.run_fold import fold, fold_all
from sealbook.model.run_snapshot import Counters, RunSnapshot, RunStatus, StepAttempt, StepStatus
from tests.support.event_strategies import RUN, START, stored

TO_REACH_RUN = {
    "PENDING": [],
    "RUNNING": ["RunStarted"],
    "PAUSED": ["RunStarted", "RunPaused"],
    "COMPLETED": ["RunStarted", "RunCompleted"],
    "FAILED": ["RunStarted", "RunFailed"],
    "CANCELLED": ["RunStarted", "RunCancelled"],
}
TO_REACH_ATTEMPT = {
    "PENDING": [],
    "RUNNING": ["StepStarted"],
    "SUCCESS": ["StepStarted", "StepCompleted"],
    "FAILED": ["StepStarted", "StepFailed"],
    "SKIPPED": ["StepSkipped"],
}

RUN_EVENTS = [
    "RunQueued",
    "RunStarted",
    "RunPaused",
    "RunResumed",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
]
LEGAL_RUN_MOVES = {
    ("RunQueued", "PENDING"): "PENDING",
    ("RunStarted", "PENDING"): "RUNNING",
    ("RunPaused", "RUNNING"): "PAUSED",
    ("RunResumed", "PAUSED"): "RUNNING",
    ("RunCompleted", "RUNNING"): "COMPLETED",
    ("RunFailed", "PENDING"): "FAILED",
    ("RunFailed", "RUNNING"): "FAILED",
    ("RunFailed", "PAUSED"): "FAILED",
    ("RunCancelled", "PENDING"): "CANCELLED",
    ("RunCancelled", "RUNNING"): "CANCELLED",
    ("RunCancelled", "PAUSED"): "CANCELLED",
}

STEP_EVENTS = ["StepStarted", "StepCompleted", "StepFailed", "StepSkipped"]
LEGAL_STEP_MOVES = {
    ("StepStarted", "PENDING", "RUNNING"): "RUNNING",
    ("StepCompleted", "RUNNING", "RUNNING"): "SUCCESS",
    ("StepCompleted", "RUNNING", "PAUSED"): "SUCCESS",
    ("StepFailed", "RUNNING", "RUNNING"): "FAILED",
    ("StepFailed", "RUNNING", "PAUSED"): "FAILED",
    ("StepSkipped", "PENDING", "RUNNING"): "SKIPPED",
    ("StepSkipped", "PENDING", "PAUSED"): "SKIPPED",
}

FACTS: dict[str, tuple[dict[str, object], Counters]] = {
    "SignalAccepted": ({}, Counters(signals_accepted=1)),
    "SignalRejected": ({}, Counters(signals_rejected=1)),
    "PartitionSealed": (
        {"recordCount": 200, "payloadBytes": 3000},
        Counters(partitions_sealed=1, records_sealed=200, bytes_sealed=3000),
    ),
    "PartitionFailed": ({"error": "quota"}, Counters(partitions_failed=1)),
    "PartitionJudged": ({"outcome": "accepted"}, Counters(partitions_accepted=1)),
    "PartitionPublished": (
        {"recordCount": 200, "bytes": 900},
        Counters(partitions_published=1, records_published=200, bytes_published=900),
    ),
    "PartitionHidden": ({}, Counters(partitions_hidden=1)),
    "PartitionRequeued": ({}, Counters(partitions_requeued=1)),
    "PartitionRolledBack": ({}, Counters(partitions_rolled_back=1)),
    "PartitionCancelled": ({}, Counters(partitions_cancelled=1)),
}


def after(*event_types: str, step_id: str = "load") -> RunSnapshot:
    """Return the snapshot after events, those of steps being about the one step."""
    return fold_all(
        RunSnapshot.pending(RUN),
        [
            stored(seq, event_type, step_id if event_type.startswith("Step") else None)
            for seq, event_type in enumerate(event_types, start=1)
        ],
    )


def next_event(snapshot: RunSnapshot, event_type: str, **rest: object) -> RunEvent:
    return stored(snapshot.last_event_seq + 1, event_type, **rest)  # type: ignore[arg-type]


def skipped(snapshot: RunSnapshot, event: RunEvent) -> RunSnapshot:
    """Return what an illegal event leaves: all as it was, its number taken, its id flagged."""
    return replace(
        snapshot,
        last_event_seq=snapshot.last_event_seq + 1,
        inconsistent=(*snapshot.inconsistent, event.event_id),
    )


def test_every_known_event_type_is_in_a_table() -> None:
    assert {*RUN_EVENTS, *STEP_EVENTS, *FACTS, "StepCorrected"} == set(EventType)


@pytest.mark.parametrize(("event_type", "status"), list(product(RUN_EVENTS, TO_REACH_RUN)))
def test_r_evt_6_moves_of_a_run(event_type: str, status: str) -> None:
    before = after(*TO_REACH_RUN[status])
    assert before.status == status
    event = next_event(before, event_type)
    folded = fold(before, event)
    legal = LEGAL_RUN_MOVES.get((event_type, status))
    if legal is None:
        assert folded == skipped(before, event)
    else:
        assert folded.status is RunStatus(legal)
        assert folded.inconsistent == ()


@pytest.mark.parametrize(
    ("event_type", "attempt", "run"),
    [
        *product(STEP_EVENTS, TO_REACH_ATTEMPT, [status for status in TO_REACH_RUN if status != "PENDING"]),
        *product(STEP_EVENTS, ["PENDING"], ["PENDING"]),
    ],
)
def test_r_evt_6_moves_of_a_step(event_type: str, attempt: str, run: str) -> None:
    start, rest = TO_REACH_RUN[run][:1], TO_REACH_RUN[run][1:]
    before = after(*start, *TO_REACH_ATTEMPT[attempt], *rest)
    assert before.inconsistent == ()
    event = next_event(before, event_type, step_id="load")
    folded = fold(before, event)
    legal = LEGAL_STEP_MOVES.get((event_type, attempt, run))
    if legal is None:
        assert folded == skipped(before, event)
    else:
        assert folded.steps["load"].status is StepStatus(legal)
        assert (folded.status, folded.inconsistent) == (before.status, ())


@pytest.mark.parametrize("event_type", [*STEP_EVENTS, "StepCorrected"])
def test_r_evt_6_step_event_must_name_a_step(event_type: str) -> None:
    before = after("RunStarted")
    event = next_event(before, event_type)
    assert fold(before, event) == skipped(before, event)


@pytest.mark.parametrize(("event_type", "status"), list(product(FACTS, TO_REACH_RUN)))
def test_r_evt_6_facts_are_legal_whatever_the_run_is(event_type: str, status: str) -> None:
    before = after(*TO_REACH_RUN[status])
    data, counters = FACTS[event_type]
    event = next_event(before, event_type, step_id="any/partition", data=data)
    assert fold(before, event) == replace(before, last_event_seq=before.last_event_seq + 1, counters=counters)


def test_a_rejection_counts_as_such() -> None:
    snapshot = fold(after(), stored(1, "PartitionJudged", data={"outcome": "rejected"}))
    assert snapshot.counters == Counters(partitions_rejected=1)


@pytest.mark.parametrize(
    ("event_type", "data"),
    [
        ("PartitionSealed", {"recordCount": -1}),
        ("PartitionSealed", {"recordCount": 5, "payloadBytes": "many"}),
        ("PartitionSealed", {"recordCount": True}),
        ("PartitionSealed", {"recordCount": 2.0}),
        ("PartitionSealed", {"payloadBytes": None}),
        ("PartitionPublished", {"bytes": [1]}),
        ("PartitionJudged", {}),
        ("PartitionJudged", {"outcome": "unsure"}),
        ("PartitionJudged", {"outcome": {"accepted": True}}),
    ],
)
def test_fact_that_cannot_be_read_counts_nothing_and_is_flagged(
    event_type: str, data: dict[str, object]
) -> None:
    before = after("RunStarted")
    event = next_event(before, event_type, data=data)
    assert fold(before, event) == skipped(before, event)


@pytest.mark.parametrize("data", [None, "text", 7, [{"outcome": "accepted"}]])
@pytest.mark.parametrize("event_type", [*EventType, "Unheard"])
def test_r_evt_3_data_that_is_no_object_says_nothing(event_type: str, data: object) -> None:
    before = after("RunStarted")
    event = RunEvent.new(RUN, event_type, "load", event_data=data, emitted_at=START).stored(2, START)
    empty = replace(event, event_data={})
    assert fold(before, event) == fold(before, empty)


def test_times_and_duration_are_those_of_the_events() -> None:
    snapshot = after("RunQueued", "RunStarted", "RunPaused", "RunResumed", "RunCompleted")
    assert (snapshot.started_at, snapshot.completed_at) == (at(2), at(5))
    assert snapshot.duration is not None
    assert snapshot.duration.total_seconds() == 3


def at(seq: int) -> object:
    return stored(seq, "T").emitted_at


@pytest.mark.parametrize("event_type", ["RunFailed", "RunCancelled"])
@pytest.mark.parametrize(
    ("error", "text"), [("no quota left", "no quota left"), ({"code": 8, "at": [1]}, '{"at":[1],"code":8}')]
)
def test_error_of_a_run_is_text(event_type: str, error: object, text: str) -> None:
    before = after("RunStarted")
    assert fold(before, next_event(before, event_type, data={"error": error})).error == text


def test_failed_attempts_stay_and_each_attempt_moves_by_itself() -> None:
    """R-EVT-6: (stepId, logicalAttemptId) is what has a status."""
    log = [
        stored(1, "RunStarted"),
        stored(2, "StepStarted", "load"),
        stored(3, "StepStarted", "load", 2),
        stored(4, "StepFailed", "load", "1", {"error": "worker lost"}),
        stored(5, "StepCompleted", "load", "2", {"artifacts": ["s3://a", {"table": "t"}]}),
    ]
    step = fold_all(RunSnapshot.pending(RUN), log).steps["load"]
    assert step.attempts == (
        StepAttempt(
            "1", StepStatus.FAILED, started_at=log[1].emitted_at, completed_at=log[3].emitted_at,
            error="worker lost", decided_by=log[3].event_id,
        ),
        StepAttempt(
            "2", StepStatus.SUCCESS, started_at=log[2].emitted_at, completed_at=log[4].emitted_at,
            artifacts=("s3://a", {"table": "t"}), decided_by=log[4].event_id,
        ),
    )  # fmt: skip
    assert (step.latest, step.status) == (step.attempts[1], StepStatus.SUCCESS)


def test_artifacts_are_those_of_successes_then_of_the_run() -> None:
    log = [
        stored(1, "RunStarted"),
        stored(2, "StepStarted", "a"),
        stored(3, "StepStarted", "b"),
        stored(4, "StepFailed", "b", None, {"artifacts": ["half written"]}),
        stored(5, "StepStarted", "b", 2),
        stored(6, "StepCompleted", "b", 2, {"artifacts": ["of b"]}),
        stored(7, "StepCompleted", "a", None, {"artifacts": {"a": "single one"}}),
        stored(8, "RunCompleted", None, None, {"artifacts": ["of the run"]}),
    ]
    assert fold_all(RunSnapshot.pending(RUN), log).artifacts == ({"a": "single one"}, "of b", "of the run")


def correction(snapshot: RunSnapshot, corrects: object, status: object, **data: object) -> RunEvent:
    return next_event(
        snapshot,
        "StepCorrected",
        step_id="load",
        data={"correctsEventId": corrects, "status": status, **data},
    )


@pytest.mark.parametrize("run_end", [[], ["RunCompleted"], ["RunFailed"], ["RunCancelled"], ["RunPaused"]])
@pytest.mark.parametrize(("was", "now"), list(product(["SUCCESS", "FAILED", "SKIPPED"], repeat=2)))
def test_r_evt_6_correction_replaces_the_outcome(was: str, now: str, run_end: list[str]) -> None:
    before = after("RunStarted", *TO_REACH_ATTEMPT[was], *run_end)
    old = before.steps["load"].latest
    assert old.decided_by is not None
    event = correction(before, old.decided_by, now, error="bad rows", artifacts=["ref"])
    folded = fold(before, event)
    new = folded.steps["load"].latest
    assert new == replace(
        old,
        status=StepStatus(now),
        error="bad rows" if now == "FAILED" else None,
        artifacts=("ref",) if now == "SUCCESS" else (),
        decided_by=event.event_id,
        overruled=(old.decided_by,),
    )
    assert (old.corrected_by, new.corrected_by) == (None, event.event_id)
    assert (folded.status, folded.inconsistent) == (before.status, ())


def test_a_correction_can_itself_be_corrected_but_an_overruled_outcome_cannot() -> None:
    snapshot = after("RunStarted", "StepStarted", "StepCompleted")
    outcome = snapshot.steps["load"].latest.decided_by
    first = correction(snapshot, outcome, "FAILED", error="x")
    snapshot = fold(snapshot, first)
    too_late = correction(snapshot, outcome, "SKIPPED")
    assert fold(snapshot, too_late) == skipped(snapshot, too_late)
    second = correction(snapshot, first.event_id, "SUCCESS")
    attempt = fold(snapshot, second).steps["load"].latest
    assert attempt.overruled == (outcome, first.event_id)
    assert (attempt.status, attempt.error, attempt.corrected_by) == (
        StepStatus.SUCCESS,
        None,
        second.event_id,
    )


@pytest.mark.parametrize(
    ("prefix", "corrects", "status"),
    [
        (["StepStarted", "StepCompleted"], "3f0c8a52-4f0e-4c8e-9a0a-0d4f7d2f9b11", "FAILED"),
        (["StepStarted", "StepCompleted"], None, "FAILED"),
        (["StepStarted", "StepCompleted"], "the outcome", "RUNNING"),
        (["StepStarted", "StepCompleted"], "the outcome", "PENDING"),
        (["StepStarted", "StepCompleted"], "the outcome", "success"),
        (["StepStarted", "StepCompleted"], "the outcome", ["FAILED"]),
        (["StepStarted", "StepCompleted"], "the outcome", None),
        (["StepStarted"], None, "FAILED"),
        (["StepStarted"], "the start", "FAILED"),
        ([], None, "FAILED"),
    ],
)
def test_r_evt_6_correction_without_an_outcome_in_force_or_a_new_one_is_illegal(
    prefix: list[str], corrects: str | None, status: object
) -> None:
    before = after("RunStarted", *prefix)
    known = {"the outcome": stored(3, "StepCompleted", "load"), "the start": stored(2, "StepStarted", "load")}
    event = correction(before, known[corrects].event_id if corrects in known else corrects, status)
    assert fold(before, event) == skipped(before, event)


def test_correction_is_of_one_attempt_only() -> None:
    before = after("RunStarted", "StepStarted", "StepCompleted")
    outcome = before.steps["load"].latest.decided_by
    event = next_event(
        before, "StepCorrected", step_id="load", attempt=2,
        data={"correctsEventId": outcome, "status": "FAILED"},
    )  # fmt: skip
    assert fold(before, event) == skipped(before, event)


def test_illegal_events_are_flagged_in_order_and_the_run_goes_on() -> None:
    snapshot = after("RunCompleted", "RunStarted", "StepCompleted", "RunCompleted")
    flagged = (stored(1, "RunCompleted").event_id, stored(3, "StepCompleted", "load").event_id)
    assert snapshot.inconsistent == flagged
    assert (snapshot.status, snapshot.steps) == (RunStatus.COMPLETED, {})


def test_only_stored_events_of_the_same_run_are_folded() -> None:
    snapshot = RunSnapshot.pending(RUN)
    with pytest.raises(InvalidInput) as refused:
        fold(snapshot, RunEvent.new(RUN, "RunStarted"))
    assert refused.value.field == "run_seq"
    with pytest.raises(InvalidInput) as refused:
        fold(snapshot, RunEvent.new("another", "RunStarted").stored(1, START))
    assert refused.value.field == "run_id"
