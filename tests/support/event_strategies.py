"""Hypothesis strategies: any event that the contract allows, and logs of one run as a store gives them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from sealbook.model.events import EventType, RunEvent

RUN = "01J8ZQ6T5N8W3Y2V7R4K9M0XCE"
START = datetime(2026, 1, 1, 6, tzinfo=UTC)

unhurried = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For all tests over these strategies: none may fail because the machine is busy."""

storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
tokens = storable_text.filter(lambda text: text.strip() != "" and "|" not in text)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | storable_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(storable_text, inner, max_size=4),
    max_leaves=6,
)
json_objects = st.dictionaries(storable_text, json_values, max_size=5)

times = st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001 the zone is the strategy's own
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)

events = st.builds(
    RunEvent.new,
    tokens,
    st.sampled_from(EventType) | tokens,
    st.none() | tokens,
    st.none() | tokens | st.integers(0, 99),
    tokens,
    json_objects | json_values,
    st.none() | times,
    engine_attempt_id=st.none() | tokens,
    adapter_version=st.none() | tokens,
    engine_run_ref=json_values,
    caused_by_signal_id=st.none() | st.uuids().map(str),
    parent_event_id=st.none() | st.uuids().map(str),
    event_id=st.none() | st.uuids().map(str),
    partition=st.none() | tokens,
)


def stored(
    seq: int,
    event_type: str,
    step_id: str | None = None,
    attempt: str | int | None = None,
    data: Mapping[str, object] | None = None,
) -> RunEvent:
    """Make the event that a store has as number `seq` of the run, said `seq` seconds after START."""
    at = START + timedelta(seconds=seq)
    # A plan version of its own makes the event's key and id unlike those of any other number.
    event = RunEvent.new(RUN, event_type, step_id, attempt, plan_version=f"{seq}", event_data=data or {})
    return event.stored(seq, at)


_STEPS = ["extract", "load", "load", "load", None]
_ATTEMPTS = [None, 1, 1, 2, 3]
# Single events of all types are mostly illegal where they fall; the longer phrases give logs that go on.
_PHRASES: list[tuple[str, ...]] = [
    *((event_type,) for event_type in [*EventType, "TaskObserved"]),
    ("StepStarted", "StepCompleted"),
    ("StepStarted", "StepFailed", "StepCorrected"),
    ("StepSkipped", "StepCorrected", "StepCorrected"),
    ("StepStarted", "PartitionSealed", "PartitionJudged", "PartitionPublished", "StepCompleted"),
    ("RunPaused", "StepCompleted", "RunResumed"),
]
_DATA: dict[str, list[dict[str, object]]] = {
    "PartitionJudged": [{"outcome": "accepted"}, {"outcome": "rejected"}, {"outcome": "unsure"}, {}],
    "PartitionSealed": [
        {"recordCount": 7, "payloadBytes": 90},
        {"recordCount": -1},
        {"payloadBytes": "many"},
        {},
    ],
    "PartitionPublished": [{"recordCount": 5, "bytes": 30}, {"recordCount": 5, "bytes": None}, {}],
    "StepCorrected": [
        {"status": status} for status in ("SUCCESS", "FAILED", "SKIPPED", "RUNNING", ["FAILED"])
    ],
}
_ANY_DATA: list[dict[str, object]] = [
    {},
    {"error": "no quota left", "artifacts": ["s3://report"]},
    {"error": {"code": 8}, "artifacts": {"table": "t"}},
    {"error": None, "artifacts": [{"uri": "s3://é"}, None, 1.5]},
]


@st.composite
def logs(draw: st.DrawFn) -> list[RunEvent]:
    """Draw the log of a run: known and unknown types, few steps, gaps in the numbers, many illegal events."""
    log = [stored(1, EventType.RUN_STARTED)] if draw(st.integers(0, 3)) else []
    phrases = st.tuples(st.sampled_from(_PHRASES), st.integers(0, 10**6), st.integers(1, 3))
    for phrase, number, gap in draw(st.lists(phrases, min_size=draw(st.integers(0, 12)), max_size=15)):
        step_id, attempt = _STEPS[number // 7 % len(_STEPS)], _ATTEMPTS[number // 41 % len(_ATTEMPTS)]
        for event_type in phrase:
            seq = gap + (log[-1].run_seq or 0 if log else 0)
            choices = _DATA.get(event_type, _ANY_DATA)
            data = choices[number % len(choices)] | _ANY_DATA[number % len(_ANY_DATA)]
            if event_type == EventType.STEP_CORRECTED and log:
                # Mostly the event just before, which may have given the outcome in force.
                data |= {"correctsEventId": log[-1 if number % 3 else -number % len(log)].event_id}
            log.append(stored(seq, event_type, step_id, attempt, data))
    return log
