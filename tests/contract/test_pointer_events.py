"""A pointer that moves and the event that says so commit together, on both databases."""

from __future__ import annotations

import pytest

from sealbook.errors import Conflict
from sealbook.ledger import Ledger
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import staged


def told(ledger: Ledger, run: int) -> list[tuple[str, object]]:
    events = ledger.run_store.fetch_events(run_id(run))
    return [(event.event_type, event.event_data["partition"]) for event in events]


def test_a_publication_and_a_replacement_are_told_by_the_run_that_is_published(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    ledger.pointers.swap([staged(KEY, 1), staged(OTHER, 1)])
    ledger.judge([accept(KEY, 2)])
    ledger.pointers.swap([staged(KEY, 2)])

    assert told(ledger, 1)[2:] == [("PartitionPublished", str(KEY)), ("PartitionPublished", str(OTHER))]
    *_, replaced = ledger.run_store.fetch_events(run_id(2))
    assert replaced.event_type == "PartitionPublished"
    assert replaced.event_data["replacedRunId"] == run_id(1)


def test_a_hide_is_told_by_the_run_that_is_hidden(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1)])
    ledger.pointers.swap([staged(KEY, 1)])
    ledger.judge([reject(KEY, 1, again="r1")])
    ledger.pointers.hide()

    assert told(ledger, 1)[-1] == ("PartitionHidden", str(KEY))


def test_what_changes_nothing_and_what_is_refused_says_nothing(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1)])
    ledger.pointers.swap([staged(KEY, 1)])
    before = told(ledger, 1)

    ledger.pointers.swap([staged(KEY, 1)])
    with pytest.raises(Conflict):
        ledger.pointers.swap([staged(KEY, 1, content="other bytes")])

    assert told(ledger, 1) == before
