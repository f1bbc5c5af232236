"""Control actions (R-STATE-3, R-CTL-3): what they change, what they refuse, and the log that names them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from sqlalchemy import Row, select

from sealbook.errors import IllegalMove, InvalidInput, NotFound, SealbookError
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.states.tables import override_log
from sealbook.model import PartitionKey, PartitionState, Status
from tests.support.ledger import KEY, OTHER, accept, reject, run_id

THIRD = PartitionKey("demo", "Acme", "clicks", date(2026, 1, 1))
WHO: dict[str, Any] = {"actor": "ann@example.com", "reason": "the upstream was repaired"}


def log(ledger: Ledger) -> list[Row[Any]]:
    """Return the override log, oldest first."""
    with ledger._database.read() as connection:
        return list(connection.execute(select(override_log).order_by(override_log.c.id)))


def test_requeue(ledger: Ledger) -> None:
    """R-STATE-3: failed becomes pending; current_run_id, its data and the attempts stay."""
    ledger.judge([reject(KEY, 1), accept(OTHER, 1), reject(OTHER, 1, again="x")])
    failed = ledger.state(OTHER)
    states = ledger.requeue([OTHER, KEY, OTHER], **WHO)
    assert [state.key for state in states] == [OTHER, KEY, OTHER]
    for state in states:
        assert (state.status, state.error_message) == (Status.PENDING, None)
        assert ledger.state(state.key) == state
    assert (states[0].attempt_count, states[1].attempt_count) == (2, 1)
    for field in ("current_run_id", "schema_version", "record_count"):
        assert getattr(states[0], field) == getattr(failed, field)
    assert len(ledger.attempts(OTHER)) == 2


def test_a_requeued_partition_is_judged_like_any_other(ledger: Ledger) -> None:
    """R-STATE-5: the count goes on where it was."""
    ledger.judge([reject(KEY, 1)])
    ledger.requeue([KEY], **WHO)
    assert ledger.judge([reject(KEY, 1)])[0].status is Status.PENDING  # delivered again: changes nothing
    [state] = ledger.judge([accept(KEY, 2)])
    assert (state.status, state.attempt_count) == (Status.SUCCESS, 2)


def test_every_requeue_is_logged(ledger_url: str) -> None:
    """R-CTL-3: actor, reason, time, filter and the keys, each once."""
    at = datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
    chosen = {"source": "google_ads", "since": date(2026, 1, 1), "status": Status.FAILED, "tags": ["a", None]}
    with open_ledger(ledger_url, clock=lambda: at) as ledger:
        ledger.judge([reject(KEY), reject(OTHER)])
        ledger.requeue([OTHER, KEY, KEY], actor="Zoë", reason="why ✓", filter=chosen)
        [entry] = log(ledger)
    assert (entry.actor, entry.reason, entry.action, entry.at, entry.run_id) == (
        "Zoë",
        "why ✓",
        "requeue",
        at,
        None,
    )
    assert entry.filter == {
        "source": "google_ads",
        "since": "2026-01-01",
        "status": "failed",
        "tags": ["a", None],
    }
    assert entry.keys == [str(OTHER), str(KEY)]


def test_requeue_of_nothing_is_nothing(ledger: Ledger) -> None:
    assert ledger.requeue([], **WHO) == []
    assert log(ledger) == []


@pytest.mark.parametrize("unfit", ["success", "pending", "no row"])
def test_requeue_is_all_or_none(ledger: Ledger, unfit: str) -> None:
    """R-STATE-3: one that is not failed stops all of them, and nothing is logged."""
    ledger.judge([reject(KEY)])
    if unfit == "success":
        ledger.judge([accept(OTHER)])
    elif unfit == "pending":
        ledger.judge([reject(OTHER)])
        ledger.requeue([OTHER], **WHO)
    before, logged = list(ledger.states()), log(ledger)
    with pytest.raises(IllegalMove, match=str(OTHER)):
        ledger.requeue([KEY, OTHER], **WHO)
    assert list(ledger.states()) == before
    assert log(ledger) == logged


def test_rollback(ledger: Ledger) -> None:
    """R-STATE-3, R-STATE-4: authority, and what describes it, go back; no attempt is counted."""
    ledger.judge([accept(KEY, 1, records=1), accept(KEY, 2, records=2), accept(KEY, 3, records=3)])
    state = ledger.rollback(KEY, run_id(1), **WHO)
    assert state == ledger.state(KEY)
    assert (state.status, state.current_run_id, state.record_count) == (Status.SUCCESS, run_id(1), 1)
    assert (state.schema_version, state.attempt_count) == ("1", 3)
    [entry] = log(ledger)
    assert (entry.action, entry.keys, entry.run_id) == ("rollback", [str(KEY)], run_id(1))
    assert (entry.actor, entry.reason, entry.filter) == (WHO["actor"], WHO["reason"], None)


def test_a_newer_run_takes_over_after_a_rollback(ledger: Ledger) -> None:
    """R-STATE-3: a verdict that was known before the rollback does not undo it; a new one does."""
    ledger.judge([accept(KEY, 1), accept(KEY, 3)])
    ledger.rollback(KEY, run_id(1), **WHO)
    assert ledger.judge([accept(KEY, 3)])[0].current_run_id == run_id(1)
    assert ledger.judge([accept(KEY, 2)])[0].current_run_id == run_id(2)


def test_rollback_describes_the_run_as_last_judged(ledger: Ledger) -> None:
    """R-STATE-4: a re-validation may have recounted it."""
    ledger.judge([accept(KEY, 1, records=1), accept(KEY, 2), accept(KEY, 1, again="x", records=5)])
    assert ledger.rollback(KEY, run_id(1), **WHO).record_count == 5


REFUSED: dict[str, tuple[int, type[SealbookError], str]] = {
    "to a run that was never judged": (9, NotFound, "no judged run"),
    "to a rejected run": (2, IllegalMove, "was rejected when last judged"),
    "to a run rejected by a re-validation": (1, IllegalMove, "was rejected when last judged"),
    "to a run of another schema_version": (3, IllegalMove, "same schema_version"),
    "to the current run": (5, IllegalMove, "only to an earlier run"),
    "to a newer run": (6, IllegalMove, "only to an earlier run"),
}


def test_rollbacks_that_are_refused(ledger: Ledger) -> None:
    """R-STATE-3: typed, with the key named, nothing written and nothing logged."""
    ledger.judge(
        [
            accept(KEY, 1),
            reject(KEY, 2),
            accept(KEY, 3, version="2"),
            accept(KEY, 5),
            reject(KEY, 1, again="x"),
            accept(KEY, 6),
        ]
    )
    ledger.rollback(KEY, run_id(5), **WHO)
    before, logged = ledger.state(KEY), log(ledger)
    for what, (run, error, why) in REFUSED.items():
        with pytest.raises(error, match=why) as refused:
            ledger.rollback(KEY, run_id(run), **WHO)
        assert str(KEY) in str(refused.value), what
        assert refused.value.remedy, what
    assert ledger.state(KEY) == before
    assert log(ledger) == logged


def test_only_a_success_is_rolled_back(ledger: Ledger) -> None:
    """R-STATE-3: not a failure, not what waits, and not a key that nobody knows."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2), reject(KEY, 2, again="x")])
    with pytest.raises(IllegalMove, match="is failed"):
        ledger.rollback(KEY, run_id(1), **WHO)
    ledger.requeue([KEY], **WHO)
    with pytest.raises(IllegalMove, match="is pending"):
        ledger.rollback(KEY, run_id(1), **WHO)
    with pytest.raises(NotFound, match=str(OTHER)):
        ledger.rollback(OTHER, run_id(1), **WHO)
    assert ledger.state(OTHER) == PartitionState.pending(OTHER)
    assert len(log(ledger)) == 1


BAD_TEXTS: list[Any] = ["", " \n", "a\0b", "\ud800", None, 7]
BAD_FILTERS: list[Any] = [
    "source",
    7,
    {"a": "x\0"},
    {"a": "\ud800"},
    {"a": object()},
    {1: 2},
    {"a": float("nan")},
]


def test_bad_input(ledger: Ledger) -> None:
    """Each is refused with an InvalidInput that names it; nothing is written."""
    ledger.judge([reject(KEY), accept(OTHER, 1), accept(OTHER, 2)])
    before = list(ledger.states())
    for field in ("actor", "reason"):
        for value in BAD_TEXTS:
            with pytest.raises(InvalidInput, match=rf"^{field} "):
                ledger.requeue([KEY], **{**WHO, field: value})
            with pytest.raises(InvalidInput, match=rf"^{field} "):
                ledger.rollback(OTHER, run_id(1), **{**WHO, field: value})
    for value in BAD_FILTERS:
        with pytest.raises(InvalidInput, match="filter"):
            ledger.requeue([KEY], **WHO, filter=value)
    bad_keys: list[Any] = [str(KEY), None]
    for value in bad_keys:
        with pytest.raises(InvalidInput, match=r"^key "):
            ledger.requeue([KEY, value], **WHO)
        with pytest.raises(InvalidInput, match=r"^key "):
            ledger.rollback(value, run_id(1), **WHO)
    with pytest.raises(InvalidInput, match=r"^run_id "):
        ledger.rollback(OTHER, "latest", **WHO)
    assert list(ledger.states()) == before
    assert log(ledger) == []
