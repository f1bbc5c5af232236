"""Random logs, duplicates, batch splits and interleavings: fold, replay, projection and rebuild agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.ledger import Ledger
from sealbook.model.events import RunEvent
from sealbook.model.run_fold import fold, fold_all
from sealbook.model.run_snapshot import RunSnapshot
from tests.support.event_strategies import events, logs

LIMITS = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_numbers = count()


def _of_run(log: list[RunEvent], run_id: str) -> list[RunEvent]:
    """Tell the same story of another run, as somebody would who has no store yet."""
    return [
        RunEvent.new(
            run_id,
            event.event_type,
            event.step_id,
            event.logical_attempt_id,
            event.plan_version,
            event.event_data,
        )
        for event in log
    ]


@LIMITS
@given(appended=events)
def test_any_event_comes_back_as_it_was_appended(ledger: Ledger, appended: RunEvent) -> None:
    """R-EVT-1: any text, number and nesting that the model allows survives both databases."""
    appended = replace(appended, run_id=f"{next(_numbers)}", idempotency_key="", event_id="")
    result = ledger.run_store.append_event(appended)
    (found,) = ledger.run_store.fetch_events(appended.run_id)
    assert found.persisted_at is not None
    assert found == appended.stored(result.run_seq, found.persisted_at)
    assert found.to_json() == appended.stored(result.run_seq, found.persisted_at).to_json()
    assert ledger.run_store.append_event(found).conflict is False


@LIMITS
@given(stories=st.lists(logs(), min_size=1, max_size=3), data=st.data())
def test_incremental_replay_and_rebuild_agree(
    ledger: Ledger, stories: list[list[RunEvent]], data: st.DataObject
) -> None:
    """R-EVT-4, R-EVT-7, R-EVT-8: whatever is appended, in whatever batches, with whatever repeated."""
    store = ledger.run_store
    runs = {f"{next(_numbers):06}": story for story in stories}
    waiting = {run_id: _of_run(story, run_id) for run_id, story in runs.items() if story}
    appended: list[RunEvent] = []
    numbers: dict[str, int] = {}
    while waiting:
        batch: list[RunEvent] = []
        for _ in range(data.draw(st.integers(1, 5), label="steps")):
            if waiting:
                run_id = data.draw(st.sampled_from(sorted(waiting)), label="run")
                batch.append(waiting[run_id].pop(0))
                if not waiting[run_id]:
                    del waiting[run_id]
            if appended or batch:
                batch.extend(
                    data.draw(st.lists(st.sampled_from(appended + batch), max_size=3), label="again")
                )
        for event, result in zip(batch, store.append_events(batch), strict=True):
            assert result.persisted is (event.idempotency_key not in numbers)
            assert numbers.setdefault(event.idempotency_key, result.run_seq) == result.run_seq
        appended += batch
        if data.draw(st.booleans(), label="project"):
            store.projector(batch=data.draw(st.integers(1, 4), label="batch")).catch_up()
    store.projector(batch=3).catch_up()
    incremental = {run.snapshot.run_id: run.snapshot for run in store.list_runs()}
    store.projector(batch=7).rebuild()
    rebuilt = {run.snapshot.run_id: run.snapshot for run in store.list_runs()}
    assert rebuilt == incremental
    for run_id, story in runs.items():
        log = store.fetch_events(run_id)
        assert [event.run_seq for event in log] == list(range(1, len(story) + 1))
        expected = fold_all(RunSnapshot.pending(run_id), log)
        assert store.project_snapshot(run_id) == _one_by_one(run_id, log, fold) == expected
        assert incremental.get(run_id, RunSnapshot.pending(run_id)) == expected
        assert RunSnapshot.from_json(expected.to_json()).hash == expected.hash


def _one_by_one(
    run_id: str, log: list[RunEvent], step: Callable[[RunSnapshot, RunEvent], RunSnapshot]
) -> RunSnapshot:
    snapshot = RunSnapshot.pending(run_id)
    for event in log:
        snapshot = step(step(snapshot, event), event)
    return snapshot


def test_duplicates_by_the_thousand_leave_the_hash(ledger: Ledger) -> None:
    """R-EVT-4: 20,000 duplicates change no snapshot, replayed or projected, and add no event."""
    store = ledger.run_store
    log = [RunEvent.new("r", "RunStarted")]
    log += [
        RunEvent.new("r", "PartitionSealed", f"extract/{n}", event_data={"recordCount": n})
        for n in range(999)
    ]
    store.append_events(log)
    store.projector().catch_up()
    before = store.project_snapshot("r").hash
    for _ in range(20):
        assert {result.idempotent for result in store.append_events(log)} == {True}
    store.projector().catch_up()
    assert store.list_runs()[0].snapshot.hash == store.project_snapshot("r").hash == before
    assert store.backlog().events == 1_000


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_a_run_of_a_hundred_thousand_events_is_rebuilt(ledger: Ledger) -> None:
    """R-EVT-7: a rebuild of a long run equals its replay."""
    store = ledger.run_store
    store.append_event(RunEvent.new("long", "RunStarted"))
    for first in range(0, 80_000, 20_000):
        store.append_events(
            RunEvent.new("long", "PartitionSealed", f"extract/{n}", event_data={"recordCount": 1})
            for n in range(first, first + 20_000)
        )
    for event_type in ("StepStarted", "StepCompleted"):
        store.append_events(RunEvent.new("long", event_type, f"step {n}") for n in range(10_000))
    store.projector().rebuild()
    snapshot = store.list_runs()[0].snapshot
    assert snapshot == store.project_snapshot("long")
    assert snapshot.counters.partitions_sealed == snapshot.counters.records_sealed == 80_000
    assert len(snapshot.steps) == 10_000
    assert {step.status for step in snapshot.steps.values()} == {"SUCCESS"}
