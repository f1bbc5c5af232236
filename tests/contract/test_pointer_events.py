"""A pointer that moves and the event that says so commit together, on both databases."""

from __future__ import annotations

import pytest

from sealbook.errors import Conflict
from sealbook.ledger import Ledger
from sealbook.model.partition_events import PartitionPublished, read_fact
from sealbook.status.verify import verify_ledger
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import staged


def told(ledger: Ledger, run: int) -> list[tuple[str, str | None]]:
    events = ledger.run_store.fetch_events(run_id(run))
    return [(event.event_type, event.partition) for event in events]


def test_a_publication_and_a_replacement_are_told_by_the_run_that_is_published(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    ledger.pointers.swap([staged(KEY, 1), staged(OTHER, 1)])
    ledger.judge([accept(KEY, 2)])
    ledger.pointers.swap([staged(KEY, 2)])

    assert told(ledger, 1)[2:] == [("PartitionPublished", str(KEY)), ("PartitionPublished", str(OTHER))]
    *_, replaced = ledger.run_store.fetch_events(run_id(2))
    fact = read_fact(replaced)
    assert isinstance(fact, PartitionPublished)
    assert (fact.replaced_run_id, fact.parts, fact.digest) == (run_id(1), 1, staged(KEY, 2).digest)


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


def test_a_run_that_is_published_again_is_told_again(ledger: Ledger) -> None:
    """R-EVT-11: back and forth by rollbacks, every move of the pointer is in the log."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2)])
    ledger.pointers.swap([staged(KEY, 2)])
    for _ in range(2):
        ledger.rollback(KEY, run_id(1), actor="ann", reason="back")
        ledger.pointers.swap([staged(KEY, 1)])
        ledger.rollback(KEY, run_id(2), actor="ann", reason="and forth")
    published = [each for each in ledger.reader.partition_log.events(KEY) if "Published" in each.event_type]
    assert [each.run_id for each in published] == [run_id(run) for run in (2, 1, 2, 1, 2)]
    assert list(verify_ledger(ledger.reader)) == []
