"""Control actions (R-STATE-3, R-CTL-3): what they change, what they refuse, and the log that names them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from sqlalchemy import Row, select

from sealbook.errors import IllegalMove, InvalidInput
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.states.tables import override_log
from sealbook.model import PartitionKey, Status
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
    results = ledger.requeue([OTHER, KEY, OTHER], **WHO)
    assert [result.refused for result in results] == [None, None, None]
    states = [result.state for result in results]
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


def test_a_requeue_of_many_says_of_each_what_became_of_it(ledger: Ledger) -> None:
    """R-CTL-8: what is not failed is refused and left alone, the others are done; the log names those."""
    waiting = PartitionKey("demo", "waiting", "clicks", date(2026, 1, 1))
    ledger.judge([reject(KEY), accept(OTHER), reject(waiting)])
    ledger.requeue([waiting], **WHO)
    before = [ledger.state(key) for key in (OTHER, waiting, THIRD)]
    results = ledger.requeue([OTHER, KEY, waiting, THIRD, KEY], **WHO)
    assert [result.key for result in results] == [OTHER, KEY, waiting, THIRD, KEY]
    assert [result.refused for result in results] == [
        f"{OTHER} is success; only a failed partition can be requeued",
        None,
        f"{waiting} is pending; only a failed partition can be requeued",
        f"{THIRD} is pending; only a failed partition can be requeued",
        None,
    ]
    assert results[1].state == results[4].state == ledger.state(KEY)
    assert ledger.state(KEY).status is Status.PENDING
    assert [ledger.state(key) for key in (OTHER, waiting, THIRD)] == before
    assert [entry.keys for entry in log(ledger)] == [[str(waiting)], [str(KEY)]]


@pytest.mark.parametrize("unfit", ["success", "pending", "no row"])
def test_a_requeue_of_which_nothing_can_be_done_is_an_error(ledger: Ledger, unfit: str) -> None:
    """R-STATE-3: typed, with the partition named, and nothing is written or logged."""
    if unfit == "success":
        ledger.judge([accept(OTHER)])
    elif unfit == "pending":
        ledger.judge([reject(OTHER)])
        ledger.requeue([OTHER], **WHO)
    before, logged = list(ledger.states()), log(ledger)
    with pytest.raises(IllegalMove, match=str(OTHER)):
        ledger.requeue([OTHER], **WHO)
    with pytest.raises(IllegalMove, match="and so on for 1 more"):
        ledger.requeue([OTHER, THIRD], **WHO)
    assert list(ledger.states()) == before
    assert log(ledger) == logged


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
