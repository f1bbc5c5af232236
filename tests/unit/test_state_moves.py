"""R-STATE-3 and R-STATE-4: the table of moves, row by row, and what holds for every walk through it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import IllegalMove
from sealbook.model import PartitionState, Status, Verdict, next_state
from sealbook.model.state import Move, Reprocess, Requeue, Rollback, next_hold
from tests.support.ledger import KEY, accept, reject, run_id

BEFORE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
NOW = BEFORE + timedelta(hours=1)

NONE = PartitionState.pending(KEY)
FAILED = NONE._replace(status=Status.FAILED, error_message="first", attempt_count=1, updated_at=BEFORE)
REQUEUED = FAILED._replace(status=Status.PENDING, error_message=None)
SUCCESS = NONE._replace(
    status=Status.SUCCESS,
    current_run_id=run_id(5),
    schema_version="1",
    record_count=10,
    attempt_count=1,
    updated_at=BEFORE,
)
DEMOTED = SUCCESS._replace(status=Status.FAILED, error_message="found out", attempt_count=2)
REQUEUED_DEMOTED = DEMOTED._replace(status=Status.PENDING, error_message=None)


def judged(state: PartitionState, **changes: Any) -> PartitionState:
    """Return the state with one attempt more, and what else a verdict changes."""
    return state._replace(attempt_count=state.attempt_count + 1, updated_at=NOW, **changes)


def authority(state: PartitionState, run: int, version: str = "2", records: int = 20) -> PartitionState:
    """Return the state with a run accepted as its authority."""
    return judged(
        state,
        status=Status.SUCCESS,
        current_run_id=run_id(run),
        schema_version=version,
        record_count=records,
        error_message=None,
    )


def accepts(run: int, version: str = "2", records: int = 20) -> Verdict:
    return accept(KEY, run, version=version, records=records)


def rejects(run: int) -> Verdict:
    return reject(KEY, run, error="worse")


def back(run: int, version: str = "1") -> Rollback:
    """Roll back to a run, of a partition that has run 9."""
    return Rollback(run_id(run), version, 8, run_id(9))


LEGAL: dict[str, tuple[PartitionState, Move, PartitionState]] = {
    "none, accept": (NONE, accepts(7), authority(NONE, 7)),
    "none, reject": (NONE, rejects(7), judged(NONE, status=Status.FAILED, error_message="worse")),
    "pending, accept": (REQUEUED, accepts(7), authority(REQUEUED, 7)),
    "pending, reject": (REQUEUED, rejects(7), judged(REQUEUED, status=Status.FAILED, error_message="worse")),
    "pending after a demotion, accept a newer run": (
        REQUEUED_DEMOTED,
        accepts(7),
        authority(REQUEUED_DEMOTED, 7),
    ),
    "pending after a demotion, accept an older run": (
        REQUEUED_DEMOTED,
        accepts(3),
        authority(REQUEUED_DEMOTED, 3),
    ),
    "pending after a demotion, reject: current_run_id unchanged": (
        REQUEUED_DEMOTED,
        rejects(7),
        judged(REQUEUED_DEMOTED, status=Status.FAILED, error_message="worse"),
    ),
    "failed, accept": (FAILED, accepts(7), authority(FAILED, 7)),
    "failed, reject": (FAILED, rejects(7), judged(FAILED, error_message="worse")),
    "demoted, accept a newer run": (DEMOTED, accepts(7), authority(DEMOTED, 7)),
    "demoted, accept an older run": (DEMOTED, accepts(3), authority(DEMOTED, 3)),
    "demoted, accept the bad run after all": (DEMOTED, accepts(5), authority(DEMOTED, 5)),
    "demoted, reject: current_run_id unchanged": (
        DEMOTED,
        rejects(7),
        judged(DEMOTED, error_message="worse"),
    ),
    "success, accept a newer run": (SUCCESS, accepts(7), authority(SUCCESS, 7)),
    "success, accept an older run: authority stays": (SUCCESS, accepts(3), judged(SUCCESS)),
    "success, accept the current run again": (SUCCESS, accepts(5, "1", 10), judged(SUCCESS)),
    "success, reject a newer run: a failed reprocessing": (SUCCESS, rejects(7), judged(SUCCESS)),
    "success, reject an older run": (SUCCESS, rejects(3), judged(SUCCESS)),
    "success, reject the current run: a demotion": (
        SUCCESS,
        rejects(5),
        judged(SUCCESS, status=Status.FAILED, error_message="worse"),
    ),
    "failed, requeue": (FAILED, Requeue(), REQUEUED._replace(updated_at=NOW)),
    "demoted, requeue: current_run_id unchanged": (
        DEMOTED,
        Requeue(),
        REQUEUED_DEMOTED._replace(updated_at=NOW),
    ),
    "failed, reprocess asked": (FAILED, Reprocess(), FAILED),
    "success, reprocess asked": (SUCCESS, Reprocess(), SUCCESS),
    "success, rollback": (
        SUCCESS,
        back(3),
        SUCCESS._replace(current_run_id=run_id(3), record_count=8, updated_at=NOW),
    ),
    "success, rollback to a newer run: one is undone": (
        SUCCESS,
        back(7),
        SUCCESS._replace(current_run_id=run_id(7), record_count=8, updated_at=NOW),
    ),
    "demoted, rollback to the last good run": (
        DEMOTED,
        back(3),
        DEMOTED._replace(
            status=Status.SUCCESS,
            current_run_id=run_id(3),
            record_count=8,
            error_message=None,
            updated_at=NOW,
        ),
    ),
}

ILLEGAL: dict[str, tuple[PartitionState, Move, str]] = {
    "none, requeue": (NONE, Requeue(), "is pending; only a failed partition can be requeued"),
    "pending, requeue": (REQUEUED, Requeue(), "is pending; only a failed partition can be requeued"),
    "success, requeue": (SUCCESS, Requeue(), "is success; only a failed partition can be requeued"),
    "none, reprocess": (NONE, Reprocess(), "is pending; it waits for an attempt already"),
    "pending, reprocess": (REQUEUED, Reprocess(), "is pending; it waits for an attempt already"),
    "none, rollback": (NONE, back(3), "is pending; only a success or a failed partition"),
    "pending after a demotion, rollback": (REQUEUED_DEMOTED, back(3), "is pending; only a success or"),
    "failed without a run, rollback": (FAILED, back(3), "only to another run"),
    "success, rollback to the current run": (SUCCESS, back(5), "only to another run"),
    "success, rollback to another schema_version": (
        SUCCESS,
        back(3, "2"),
        "only to another run of the same schema_version",
    ),
    "demoted, rollback to another schema_version": (DEMOTED, back(3, "2"), "of the same schema_version"),
}

HELD: dict[str, tuple[PartitionState, Move, PartitionState]] = {
    "success, accept a middle run": (SUCCESS, accepts(6), judged(SUCCESS)),
    "success, accept the run rolled back from": (SUCCESS, accepts(7), judged(SUCCESS)),
    "success, accept a newer run": (SUCCESS, accepts(8), authority(SUCCESS, 8)),
    "success, accept the current run again": (SUCCESS, accepts(5, "1", 11), judged(SUCCESS, record_count=11)),
    "success, reject the current run": (
        SUCCESS,
        rejects(5),
        judged(SUCCESS, status=Status.FAILED, error_message="worse"),
    ),
    "demoted, accept the run rolled back from": (DEMOTED, accepts(7), judged(DEMOTED)),
    "demoted, accept an older run": (DEMOTED, accepts(3), judged(DEMOTED)),
    "demoted, accept the chosen run after all": (DEMOTED, accepts(5), authority(DEMOTED, 5)),
    "demoted, accept a newer run": (DEMOTED, accepts(8), authority(DEMOTED, 8)),
    "pending after a demotion, accept a middle run": (
        REQUEUED_DEMOTED,
        accepts(6),
        judged(REQUEUED_DEMOTED),
    ),
}
"""What happens after a rollback to run 5 of a partition that had run 7."""


@pytest.mark.parametrize(("state", "move", "expected"), LEGAL.values(), ids=LEGAL)
def test_legal_moves(state: PartitionState, move: Move, expected: PartitionState) -> None:
    """R-STATE-3: every row of the table that moves or counts."""
    assert next_state(state, move, NOW) == expected


@pytest.mark.parametrize(("state", "move", "expected"), HELD.values(), ids=HELD)
def test_moves_under_a_hold(state: PartitionState, move: Move, expected: PartitionState) -> None:
    """R-STATE-9: only a run newer than every run from before the rollback takes authority by itself."""
    assert next_state(state, move, NOW, hold=run_id(7)) == expected


def test_a_hold_never_gets_weaker() -> None:
    """R-STATE-9: what was held once is held for ever; rollbacks from before there were holds have none."""
    assert next_hold(None, back(3)) == run_id(9)
    assert next_hold(run_id(10), back(3)) == run_id(10)
    assert next_hold(run_id(8), back(3)) == run_id(9)
    assert next_hold(None, Rollback(run_id(3), "1", 8, None)) is None


@pytest.mark.parametrize(("state", "move", "reason"), ILLEGAL.values(), ids=ILLEGAL)
def test_illegal_moves(state: PartitionState, move: Move, reason: str) -> None:
    """R-STATE-3: anything else is refused with an error that names the key and the reason."""
    with pytest.raises(IllegalMove, match=reason) as refused:
        next_state(state, move, NOW)
    assert str(KEY) in str(refused.value)
    assert refused.value.remedy


def test_a_state_is_exactly_the_v1_row() -> None:
    """The fields of a state are the columns of the contract, in its order."""
    assert list(PartitionState._fields) == [
        "source",
        "customer_id",
        "query_name",
        "logical_date",
        "status",
        "current_run_id",
        "schema_version",
        "record_count",
        "updated_at",
        "error_message",
        "attempt_count",
    ]


RUNS = st.integers(1, 5)
MOVES: st.SearchStrategy[Move] = st.one_of(
    st.builds(accepts, RUNS, st.sampled_from(["1", "2"]), st.integers(0, 3)),
    st.builds(rejects, RUNS),
    st.just(Requeue()),
    st.just(Reprocess()),
    st.builds(Rollback, RUNS.map(run_id), st.sampled_from(["1", "2"]), st.integers(0, 3), RUNS.map(run_id)),
)


@given(st.lists(MOVES, max_size=30))
def test_what_holds_on_every_walk(moves: list[Move]) -> None:
    """R-STATE-3, R-STATE-4, R-STATE-5: whatever happens in whatever order."""
    state, hold = NONE, None
    accepted: dict[str, set[tuple[str | None, int | None]]] = {}
    for number, move in enumerate(moves, start=1):
        at = NOW + timedelta(minutes=number)
        try:
            after = next_state(state, move, at, hold)
        except IllegalMove:
            continue  # a value is immutable: the state before is untouched
        if isinstance(move, Verdict) and move.accepted:
            accepted.setdefault(move.run_id, set()).add((move.schema_version, move.record_count))
        if isinstance(move, Rollback):
            hold = next_hold(hold, move)
            accepted.setdefault(move.run_id, set()).add((move.schema_version, move.record_count))
        assert after.attempt_count == state.attempt_count + isinstance(move, Verdict)
        assert after.updated_at == (state.updated_at if isinstance(move, Reprocess) else at)
        assert after.key == KEY
        assert (after.error_message is not None) == (after.status is Status.FAILED)
        if after.current_run_id is None:
            assert (after.schema_version, after.record_count) == (None, None)
            assert after.status is not Status.SUCCESS
        else:
            assert (after.schema_version, after.record_count) in accepted[after.current_run_id]
        if state.status is after.status is Status.SUCCESS and not isinstance(move, Rollback):
            assert state.current_run_id is not None
            assert after.current_run_id is not None
            assert after.current_run_id >= state.current_run_id
        if isinstance(move, Verdict) and after.current_run_id != state.current_run_id:
            assert hold is None or move.run_id > hold  # R-STATE-9
        if isinstance(move, Verdict) and not move.accepted:
            assert after.current_run_id == state.current_run_id
            assert after.status is not Status.PENDING
        state = after


@given(st.permutations(range(1, 6)), st.sets(st.integers(1, 5)))
def test_first_judgements_commute(order: list[int], good: set[int]) -> None:
    """R-STATE-6: the winner is the newest accepted run, whatever the order of arrival."""
    state = NONE
    for run in order:
        state = next_state(state, accepts(run) if run in good else rejects(run), NOW)
    assert state.attempt_count == len(order)
    assert state.status is (Status.SUCCESS if good else Status.FAILED)
    assert state.current_run_id == (run_id(max(good)) if good else None)
