"""A verdict, its attempt row and its PartitionJudged event commit together; a requeue too (R-STATE-6)."""

from __future__ import annotations

import pytest

from sealbook.errors import Conflict, IllegalMove
from sealbook.ledger import Ledger
from sealbook.ledger.states import verdicts
from sealbook.model.partition_events import PartitionJudged, PartitionRolledBack, read_fact
from sealbook.model.run_snapshot import Counters
from sealbook.status.verify import verify_ledger
from tests.support.ledger import KEY, OTHER, accept, reject, run_id


def _said(ledger: Ledger) -> list[tuple[str, str, str | None, str | None]]:
    return [
        (e.event.run_id, e.event.event_type, e.event.step_id, e.event.logical_attempt_id)
        for e in ledger.run_store.fetch_feed()
    ]


def test_every_verdict_that_counts_is_told_once(ledger: Ledger) -> None:
    """R-STATE-5, R-STATE-6: one event an attempt, under the run judged; a repeated delivery says nothing."""
    ledger.judge([accept(KEY, 1), reject(OTHER, 1)])
    ledger.judge([accept(KEY, 1), reject(OTHER, 1), accept(KEY, 2)])
    ledger.judge([accept(KEY, 1, again="r1")])
    step = f"validate/{KEY}"
    assert sorted(_said(ledger)) == [
        (run_id(1), "PartitionJudged", step, "1"),
        (run_id(1), "PartitionJudged", step, "3"),
        (run_id(1), "PartitionJudged", f"validate/{OTHER}", "1"),
        (run_id(2), "PartitionJudged", step, "2"),
    ]
    log = ledger.run_store.fetch_events(run_id(1))
    assert log[-1].partition == str(KEY)
    assert isinstance(log[-1].event_data, dict)
    assert log[-1].event_data["revalidationId"] == "r1"
    judged_at = {attempt.judged_at for attempt in ledger.attempts(KEY)}
    assert {event.emitted_at for event in log if event.step_id == step} < judged_at
    assert ledger.run_store.project_snapshot(run_id(1)).counters == Counters(
        partitions_accepted=1, partitions_rejected=1
    )


def test_the_log_has_the_verdicts_of_a_partition_as_they_were_given(ledger: Ledger) -> None:
    """R-EVT-11: an older run may be judged after a newer one, in one call; its word is the last."""
    ledger.judge([reject(KEY, 4, error="new"), reject(OTHER, 2), reject(KEY, 1, error="old")])
    told = [event.run_id for event in ledger.reader.partition_log.events(KEY)]
    assert told == [run_id(4), run_id(1)]
    assert ledger.state(KEY).error_message == "old"
    assert list(verify_ledger(ledger.reader)) == []


def test_a_verdict_that_fails_says_nothing(ledger: Ledger) -> None:
    """R-STATE-6: nothing of a refused call is written, event included."""
    ledger.judge([accept(KEY, 1)])
    with pytest.raises(Conflict):
        ledger.judge([accept(OTHER, 1), reject(KEY, 1)])
    assert len(_said(ledger)) == 1


def test_an_event_that_fails_takes_the_verdict_back(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-STATE-6: they are one transaction, from both ends."""

    def fail(*_: object) -> None:
        raise RuntimeError("the power went out")

    monkeypatch.setattr(verdicts, "append_new", fail)
    with pytest.raises(RuntimeError):
        ledger.judge([accept(KEY, 1)])
    assert ledger.state(KEY).attempt_count == 0
    assert ledger.attempts(KEY) == []


def test_a_requeue_is_told_under_the_run_of_the_last_attempt(ledger: Ledger) -> None:
    """R-CTL-3: who asked and why; a requeue that is refused says nothing."""
    ledger.judge([reject(KEY, 1), reject(KEY, 2), accept(OTHER, 3)])
    with pytest.raises(IllegalMove):
        ledger.requeue([OTHER], actor="olga", reason="fixed upstream")
    ledger.requeue([KEY, OTHER, KEY], actor="olga", reason="fixed upstream")
    assert _said(ledger)[-1] == (run_id(2), "PartitionRequeued", f"control/{KEY}", "1")
    (event,) = [e for e in ledger.run_store.fetch_events(run_id(2)) if e.event_type == "PartitionRequeued"]
    assert event.partition == str(KEY)
    assert event.event_data == {"actor": "olga", "reason": "fixed upstream"}
    ledger.judge([reject(KEY, 4)])
    ledger.requeue([KEY], actor="olga", reason="again")
    assert _said(ledger)[-1] == (run_id(4), "PartitionRequeued", f"control/{KEY}", "2")


def test_a_rollback_is_told_under_the_run_that_gets_authority(ledger: Ledger) -> None:
    """R-STATE-9, R-EVT-10: its event says from which run, who asked and why; a refused one says nothing."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2)])
    ledger.rollback(KEY, run_id(1), actor="olga", reason="the second is worse")
    with pytest.raises(IllegalMove):
        ledger.rollback(KEY, run_id(1), actor="olga", reason="once more")
    *_, event = ledger.run_store.fetch_events(run_id(1))
    assert read_fact(event) == PartitionRolledBack(
        key=KEY,
        run_id=run_id(1),
        attempt="1",
        from_run_id=run_id(2),
        schema_version="1",
        record_count=10,
        actor="olga",
        reason="the second is worse",
        newest_run_id=run_id(2),
    )
    assert len(_said(ledger)) == 3


def test_a_verdict_whose_event_is_taken_is_a_conflict(ledger: Ledger) -> None:
    """R-EVT-10: no verdict, requeue or rollback without its event."""
    verdict = accept(KEY, 1)
    other = PartitionJudged.of(reject(KEY, 1), 1).to_event()
    ledger.run_store.append_event(other)
    with pytest.raises(Conflict, match="PartitionJudged"):
        ledger.judge([verdict])
    assert ledger.state(KEY).attempt_count == 0
    assert ledger.attempts(KEY) == []
