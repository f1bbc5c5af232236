"""RunEvent as JSON: the contract's names, both ways, with nothing lost (R-EVT-1)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from sealbook.errors import InvalidInput
from sealbook.model.events import RunEvent
from tests.support.event_strategies import RUN, START, events, json_objects, unhurried

SIGNAL = "3f0c8a52-4f0e-4c8e-9a0a-0d4f7d2f9b11"
PARENT = "9d2f3c1e-7a64-4a4f-8f3e-1b6f0a5c2d10"


def test_r_evt_1_every_field_has_its_contract_name() -> None:
    event = RunEvent.new(
        "r1", "StepCompleted", "load", "2", "7", {"rows": 3}, START,
        engine_attempt_id="5",
        adapter_version="1.2",
        engine_run_ref={"workflowId": "w"},
        caused_by_signal_id=SIGNAL,
        parent_event_id=PARENT,
        partition="demo/Acme/q/2026-01-01",
    ).stored(10, START)  # fmt: skip
    assert json.loads(event.to_json()) == {
        "runId": "r1",
        "runSeq": 10,
        "eventId": event.event_id,
        "stepId": "load",
        "engineAttemptId": "5",
        "logicalAttemptId": "2",
        "eventType": "StepCompleted",
        "eventData": {"rows": 3},
        "idempotencyKey": event.idempotency_key,
        "planVersion": "7",
        "emittedAt": "2026-01-01T06:00:00Z",
        "persistedAt": "2026-01-01T06:00:00Z",
        "adapterVersion": "1.2",
        "engineRunRef": {"workflowId": "w"},
        "causedBySignalId": SIGNAL,
        "parentEventId": PARENT,
        "partition": "demo/Acme/q/2026-01-01",
    }


def test_absent_fields_are_left_out() -> None:
    members = RunEvent.new("r1", "RunStarted").to_dict()
    assert members.keys() == {"runId", "eventId", "eventType", "eventData", "idempotencyKey", "planVersion"}


def test_json_is_one_line() -> None:
    assert "\n" not in RunEvent.new("r1", "T", event_data={"text": "two\nlines"}).to_json()


@unhurried
@given(events)
def test_r_evt_1_round_trip(event: RunEvent) -> None:
    assert RunEvent.from_json(event.to_json()) == event
    assert RunEvent.from_json(event.to_json().encode()) == event
    assert RunEvent.from_dict(event.to_dict()) == event


@unhurried
@given(events, json_objects)
def test_r_evt_1_unknown_fields_are_kept_both_ways(event: RunEvent, data: dict[str, object]) -> None:
    unknown = {f"x-{name}": value for name, value in data.items()}
    members = event.to_dict() | unknown
    read = RunEvent.from_json(json.dumps(members))
    assert read.extra == unknown
    assert read.to_dict() == members
    assert RunEvent.from_json(read.to_json()) == read
    assert read.stored(3, START).extra == unknown


def test_to_dict_gives_a_copy() -> None:
    event = RunEvent.from_dict({"runId": "r", "eventType": "T", "eventData": {"a": []}, "later": {"b": []}})
    text = event.to_json()
    members = event.to_dict()
    members["eventData"]["a"].append(1)  # type: ignore[index]
    members["later"]["b"].append(1)  # type: ignore[index]
    assert event.to_json() == text


def test_what_can_be_derived_may_be_absent_or_null() -> None:
    made = RunEvent.new("r1", "RunStarted")
    assert RunEvent.from_json('{"runId": "r1", "eventType": "RunStarted"}') == made
    nulls: dict[str, object] = dict.fromkeys(("eventId", "idempotencyKey", "stepId", "planVersion", "runSeq"))
    assert RunEvent.from_dict({"runId": "r1", "eventType": "RunStarted"} | nulls) == made


def test_r_evt_3_data_that_is_null_is_not_absent() -> None:
    event = RunEvent.from_json('{"runId": "r1", "eventType": "T", "eventData": null}')
    assert event.event_data is None
    assert event.to_dict()["eventData"] is None


def test_r_evt_3_another_engine_s_key_is_kept() -> None:
    event = RunEvent.from_json('{"runId": "r1", "eventType": "T", "idempotencyKey": "abc123"}')
    assert (event.idempotency_key, event.plan_version) == ("abc123", "1")
    assert RunEvent.from_json(event.to_json()) == event


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T06:00:00Z",
        "2026-01-01T06:00:00+00:00",
        "2026-01-01T07:30:00.000+01:30",
        "20260101T060000Z",
    ],
)
def test_times_are_read_in_any_iso_8601_form(text: str) -> None:
    event = RunEvent.from_dict({"runId": RUN, "eventType": "T", "emittedAt": text})
    assert event.to_dict()["emittedAt"] == "2026-01-01T06:00:00Z"


@pytest.mark.parametrize(
    ("member", "bad", "field"),
    [
        ("runId", None, "run_id"),
        ("runId", 5, "run_id"),
        ("runId", "a|b", "run_id"),
        ("runId", "\ud800", "run_id"),
        ("eventType", None, "event_type"),
        ("eventType", "", "event_type"),
        ("runSeq", 0, "run_seq"),
        ("runSeq", 1.5, "run_seq"),
        ("runSeq", True, "run_seq"),
        ("runSeq", "1", "run_seq"),
        ("eventId", "", "event_id"),
        ("eventId", 0, "event_id"),
        ("eventId", "not-a-uuid", "event_id"),
        ("stepId", "", "step_id"),
        ("stepId", ["load"], "step_id"),
        ("logicalAttemptId", True, "logical_attempt_id"),
        ("engineAttemptId", {}, "engine_attempt_id"),
        ("planVersion", 1.0, "plan_version"),
        ("eventData", {"t": "\u0000"}, "event_data.t"),
        ("idempotencyKey", "", "idempotency_key"),
        ("idempotencyKey", "x" * 513, "idempotency_key"),
        ("idempotencyKey", 7, "idempotency_key"),
        ("emittedAt", "yesterday", "emitted_at"),
        ("emittedAt", "2026-01-01", "emitted_at"),
        ("emittedAt", "2026-01-01T06:00:00", "emitted_at"),
        ("emittedAt", 1767247200, "emitted_at"),
        ("persistedAt", "2026-13-01T00:00:00Z", "persisted_at"),
        ("adapterVersion", 2, "adapter_version"),
        ("causedBySignalId", "s1", "caused_by_signal_id"),
        ("parentEventId", "p1", "parent_event_id"),
        ("partition", "", "partition"),
        ("partition", 7, "partition"),
        ("unheardOf", "\u0000", "extra.unheardOf"),
    ],
)
def test_bad_member_is_refused_by_name(member: str, bad: object, field: str) -> None:
    members = {"runId": "r1", "eventType": "T", member: bad}
    for read in (RunEvent.from_dict, lambda members: RunEvent.from_json(json.dumps(members))):
        with pytest.raises(InvalidInput) as refused:
            read(members)
        assert refused.value.field == field
        assert field in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "null", "[]", "7", '"event"', "{} {}", b"\xff\xfe", b"\x80", "\ufeff{}", "[" * 100_000,
        '{"runId": "r1", "eventType": "T", "eventData": {"n": NaN}}',
        '{"runId": "r1", "eventType": "T", "eventData": {"n": -Infinity}}',
        '{"runId": "r1", "eventType": "T", "eventData": {"n": ' + "9" * 5000 + "}}",
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        RunEvent.from_json(text)
    assert refused.value.field == "event"


@pytest.mark.parametrize("text", [None, 7, {}])
def test_only_text_and_bytes_are_read(text: object) -> None:
    with pytest.raises(InvalidInput):
        RunEvent.from_json(text)  # type: ignore[arg-type]


def test_number_that_overflows_a_float_is_refused_in_its_place() -> None:
    with pytest.raises(InvalidInput) as refused:
        RunEvent.from_json('{"runId": "r1", "eventType": "T", "eventData": {"n": 1e999}}')
    assert refused.value.field == "event_data.n"


def test_extra_cannot_shadow_a_field() -> None:
    with pytest.raises(InvalidInput) as refused:
        RunEvent(run_id="r1", event_type="T", extra={"stepId": "load"})
    assert refused.value.field == "extra"
