"""RunEvent and its idempotency key (R-EVT-3)."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model.events import EventType, RunEvent, idempotency_key
from sealbook.model.keys import RunId
from sealbook.model.wire import MAX_DEPTH
from tests.support.event_strategies import RUN, START, events, json_objects, tokens, unhurried

OTHER_ID = "3f0c8a52-4f0e-4c8e-9a0a-0d4f7d2f9b11"


@pytest.mark.parametrize(
    ("fields", "key"),
    # Digests by sha256sum over the text with its bars.
    [
        (
            (RUN, None, None, "RunStarted", "1"),
            "cad2ce515e8e681531e81b2d6764bb3e27c0a8e2d8fea7fda3b8255dab006f3b",
        ),
        (
            (RUN, "extract", 2, "StepCompleted", "7"),
            "b07aae958e5de30117b09a6b69f90a1eb987ab3c40af6b23c609723b5db1c684",
        ),
        (
            ("r1", "extract/google_ads/1234567890/campaign_daily/2026-01-01", "1", "PartitionSealed", "1"),
            "005be2d9019a3f576c9d8a90ff89914fa27002fd3a94fcc706857559b0e99716",
        ),
        (
            ("läuf-ü", "Schritt №1", None, "StepStarted", "β"),
            "8d4b10978ef56f05fc41c9cb869d282b6f5b15bed21a3c0937dad62ea35f8b26",
        ),
    ],
)
def test_r_evt_3_known_keys(fields: tuple[str, str | None, str | int | None, str, str], key: str) -> None:
    assert idempotency_key(*fields) == key
    run_id, step_id, attempt, event_type, plan_version = fields
    assert RunEvent.new(run_id, event_type, step_id, attempt, plan_version).idempotency_key == key


@unhurried
@given(tokens, tokens, tokens, tokens, tokens)
def test_r_evt_3_one_bar_between_and_nothing_else(
    run_id: str, step: str, attempt: str, kind: str, plan: str
) -> None:
    text = run_id + "|" + step + "|" + attempt + "|" + kind + "|" + plan
    assert idempotency_key(run_id, step, attempt, kind, plan) == sha256(text.encode("utf-8")).hexdigest()


def test_r_evt_3_absent_step_and_attempt_have_tokens() -> None:
    assert idempotency_key("r", None, None, "T", "1") == idempotency_key("r", "RUN", "1", "T", "1")


KEY_FIELDS = ["run_id", "step_id", "logical_attempt_id", "event_type", "plan_version"]
BAD_TEXTS = ["", "   ", "a|b", "|", "nul\0", "half \ud83d", "x" * 513, 7.0, b"bytes", True]


@pytest.mark.parametrize("make", [idempotency_key, RunEvent.new])
@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *((field, bad) for field in KEY_FIELDS for bad in BAD_TEXTS),
        *((field, None) for field in ("run_id", "event_type", "plan_version")),
    ],
)
def test_r_evt_3_bad_field_is_refused_by_name(make: Callable[..., object], field: str, bad: object) -> None:
    fields: dict[str, object] = dict.fromkeys(KEY_FIELDS, "fine") | {field: bad}
    with pytest.raises(InvalidInput) as refused:
        make(**fields)
    assert refused.value.field == field
    assert field in str(refused.value)


def test_public_signature_of_new() -> None:
    parameters = inspect.signature(RunEvent.new).parameters.values()
    public = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in public] == [
        "run_id", "event_type", "step_id", "logical_attempt_id", "plan_version", "event_data", "emitted_at",
    ]  # fmt: skip
    assert [p.default for p in public[2:]] == [None, None, "1", {}, None]


def test_new_event_is_not_stored_and_reads_no_clock() -> None:
    event = RunEvent.new(RUN, "RunStarted")
    assert (event.run_seq, event.persisted_at, event.emitted_at) == (None, None, None)
    assert (event.step_id, event.logical_attempt_id, event.plan_version) == (None, None, "1")
    assert event.event_data == {}


def test_text_of_subclasses_becomes_plain_text() -> None:
    event = RunEvent.new(RunId(RUN), EventType.RUN_STARTED, event_data={"run": RunId(RUN)})
    assert type(event.run_id) is type(event.event_type) is type(event.event_data["run"]) is str


def test_attempts_may_be_numbers() -> None:
    event = RunEvent.new(RUN, "StepStarted", "load", 2, engine_attempt_id=11)
    assert (event.logical_attempt_id, event.engine_attempt_id) == ("2", "11")


@unhurried
@given(events)
def test_event_id_is_a_uuid(event: RunEvent) -> None:
    assert str(UUID(event.event_id)) == event.event_id


@unhurried
@given(tokens, tokens, json_objects)
def test_event_made_again_is_the_same_event(run_id: str, event_type: str, data: dict[str, object]) -> None:
    first = RunEvent.new(run_id, event_type)
    again = RunEvent.new(run_id, event_type, event_data=data, emitted_at=START)
    assert first.event_id == again.event_id
    digest = int(first.idempotency_key[:32], 16)
    of_the_key, version, variant = ~(0xF << 76 | 0x3 << 62), 8 << 76, 2 << 62
    assert UUID(first.event_id).int == digest & of_the_key | version | variant


def test_event_id_differs_with_each_part_of_the_key() -> None:
    ids = {
        RunEvent.new("r", "T").event_id,
        RunEvent.new("r2", "T").event_id,
        RunEvent.new("r", "T2").event_id,
        RunEvent.new("r", "T", "s").event_id,
        RunEvent.new("r", "T", None, "2").event_id,
        RunEvent.new("r", "T", plan_version="2").event_id,
    }
    assert len(ids) == 6


def test_given_event_id_is_kept_in_lower_case() -> None:
    assert RunEvent.new(RUN, "T", event_id=OTHER_ID.upper()).event_id == OTHER_ID


@pytest.mark.parametrize("field", ["event_id", "caused_by_signal_id", "parent_event_id"])
@pytest.mark.parametrize("bad", ["", "7", OTHER_ID + "0", f"{{{OTHER_ID}}}", OTHER_ID.replace("-", ""), 7])
def test_ids_are_uuids(field: str, bad: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        RunEvent.new(RUN, "T", **{field: bad})  # type: ignore[arg-type]
    assert refused.value.field == field


def test_emitted_at_is_normalised_to_utc() -> None:
    tokyo = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    emitted_at = RunEvent.new(RUN, "T", emitted_at=tokyo).emitted_at
    assert emitted_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert emitted_at is not None
    assert emitted_at.tzinfo is UTC


@pytest.mark.parametrize(
    "bad",
    [
        datetime(2026, 1, 1),  # noqa: DTZ001 naive on purpose
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        "2026-01-01T00:00:00Z",
        START.date(),
        0,
    ],
)
def test_bad_time_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        RunEvent.new(RUN, "T", emitted_at=bad)  # type: ignore[arg-type]
    assert refused.value.field == "emitted_at"


def _nested_objects(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


def _nested_lists(levels: int) -> dict[str, object]:
    value: list[object] = []
    for _ in range(levels - 2):
        value = [value]
    return {"in": value}


def _endless() -> dict[str, object]:
    value: dict[str, object] = {}
    value["me"] = value
    return value


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (float("nan"), "event_data"),
        ([1, b"bytes"], "event_data[1]"),
        (START, "event_data"),
        ({"n": float("nan")}, "event_data.n"),
        ({"n": [1, {"deep": float("-inf")}]}, "event_data.n[1].deep"),
        ({"when": START}, "event_data.when"),
        ({"raw": b"bytes"}, "event_data.raw"),
        ({"all": {1, 2}}, "event_data.all"),
        ({"it": iter([1])}, "event_data.it"),
        ({1: "a number for a name"}, "a key of event_data"),
        ({"in": {None: 1}}, "a key of event_data.in"),
        ({"nul\0": 1}, "a key of event_data"),
        ({"t": "nul\0"}, "event_data.t"),
        ({"t": ["half \udc00"]}, "event_data.t[0]"),
        ({"n": 1 << 1024}, "event_data.n"),
    ],
)
def test_event_data_that_json_cannot_hold_is_refused_with_its_place(data: object, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        RunEvent.new(RUN, "T", event_data=data)
    assert refused.value.field == place


@pytest.mark.parametrize("data", [None, True, 7, 2.5, "text", [1, {"a": None}], {"a": []}])
def test_r_evt_3_event_data_is_any_json_value(data: object) -> None:
    event = RunEvent.new(RUN, "T", event_data=data)
    assert event.event_data == data
    assert RunEvent.from_json(event.to_json()) == event


@pytest.mark.parametrize("nested", [_nested_objects, _nested_lists])
def test_nesting_is_bounded(nested: Callable[[int], dict[str, object]]) -> None:
    assert RunEvent.new(RUN, "T", event_data=nested(MAX_DEPTH)).event_data == nested(MAX_DEPTH)
    with pytest.raises(InvalidInput, match="nested"):
        RunEvent.new(RUN, "T", event_data=nested(MAX_DEPTH + 1))


def test_data_that_holds_itself_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nested"):
        RunEvent.new(RUN, "T", event_data=_endless())


def test_event_keeps_a_copy_of_its_data() -> None:
    lists, ref = ["a"], {"workflow": ["w1"]}
    event = RunEvent.new(RUN, "T", event_data={"lists": lists, "pair": (1, 2)}, engine_run_ref=ref)
    lists.append("b")
    ref["workflow"].append("w2")
    assert event.event_data == {"lists": ["a"], "pair": [1, 2]}
    assert event.engine_run_ref == {"workflow": ["w1"]}


def test_event_data_may_be_any_mapping() -> None:
    data: Mapping[str, object] = MappingProxyType({"in": MappingProxyType({"n": 1})})
    assert RunEvent.new(RUN, "T", event_data=data).event_data == {"in": {"n": 1}}


def test_events_are_frozen_hashable_and_picklable() -> None:
    event = RunEvent.new(RUN, "T", event_data={"a": [1]}, emitted_at=START)
    with pytest.raises(FrozenInstanceError):
        event.run_id = "other"  # type: ignore[misc]
    assert {event, RunEvent.new(RUN, "T", event_data={"a": [1]}, emitted_at=START)} == {event}
    assert pickle.loads(pickle.dumps(event)) == event


@unhurried
@given(events, st.integers(1, 2**63 - 1))
def test_stored_stamps_what_was_not_said(event: RunEvent, seq: int) -> None:
    kept = event.stored(seq, START)
    assert (kept.run_seq, kept.persisted_at) == (seq, START)
    assert kept.emitted_at == (START if event.emitted_at is None else event.emitted_at)
    assert (kept.event_id, kept.idempotency_key) == (event.event_id, event.idempotency_key)
    assert kept.event_data == event.event_data


@pytest.mark.parametrize("bad", [0, -1, True, "1", 1.0, 2**63])
def test_bad_run_seq_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        RunEvent.new(RUN, "T").stored(bad, START)  # type: ignore[arg-type]
    assert refused.value.field == "run_seq"


def test_r_evt_3_a_key_that_an_event_brings_is_kept() -> None:
    event = RunEvent(run_id=RUN, event_type="T", idempotency_key="abc123")
    assert event.idempotency_key == "abc123"
    assert str(UUID(event.event_id)) == event.event_id
    assert event.stored(3, START).idempotency_key == "abc123"
    own = RunEvent.new(RUN, "T")
    assert RunEvent(run_id=RUN, event_type="T", idempotency_key=own.idempotency_key) == own


def test_r_evt_3_events_with_keys_of_their_own_have_ids_of_their_own() -> None:
    ids = {
        RunEvent(run_id=run_id, event_type="T", idempotency_key=key).event_id
        for run_id in ("r1", "r2")
        for key in ("", "a", "b")
    }
    assert len(ids) == 6


@pytest.mark.parametrize("bad", ["   ", "nul\0", "half \ud83d", "x" * 513, 7, None])
def test_r_evt_3_a_key_that_no_store_can_keep_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        RunEvent(run_id=RUN, event_type="T", idempotency_key=bad)  # type: ignore[arg-type]
    assert refused.value.field == "idempotency_key"


def test_the_partition_is_no_part_of_the_key() -> None:
    event = RunEvent.new(RUN, "PartitionSealed", partition="demo/Acme/q/2026-01-01")
    assert event.partition == "demo/Acme/q/2026-01-01"
    assert event.idempotency_key == RunEvent.new(RUN, "PartitionSealed").idempotency_key
    with pytest.raises(InvalidInput) as refused:
        RunEvent.new(RUN, "PartitionSealed", partition="")
    assert refused.value.field == "partition"
