"""R-WH-8: every mismatch of states and pointers is found, whatever became of the notes of changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sealbook.ledger import Ledger
from sealbook.model import Status
from sealbook.model.artifacts import Action
from sealbook.model.publication import Difference
from sealbook.model.selection import Selection
from sealbook.status.verify import verify_ledger
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import load, planned, seen

NOTES = "DELETE FROM authority_change"


def lose(ledger: Ledger, *statements: str) -> None:
    """Lose rows, as a restored backup or a hand on the database may."""
    with ledger._database.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def accepted(ledger: Ledger) -> None:
    ledger.judge([accept(KEY)])
    lose(ledger, NOTES)


def accepted_anew(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([accept(KEY, 2, version="2")])
    lose(ledger, NOTES)


def demoted(ledger: Ledger) -> None:
    ledger.judge([accept(KEY)])
    load(ledger)
    ledger.judge([reject(KEY, again="r")])
    lose(ledger, NOTES)


def counted_anew(ledger: Ledger) -> None:
    """R-STATE-10; that its artifact cannot be published any more is told by a load."""
    ledger.judge([accept(KEY, records=10)])
    load(ledger)
    ledger.judge([accept(KEY, records=11, again="r")])
    lose(ledger, NOTES)


def without_record(ledger: Ledger) -> None:
    ledger.judge([accept(KEY)])
    load(ledger)
    lose(ledger, "DELETE FROM load_record")


def without_state(ledger: Ledger) -> None:
    ledger.judge([accept(KEY)])
    load(ledger)
    lose(ledger, "DELETE FROM partition_state")


LOST: dict[Callable[[Ledger], None], tuple[Action, list[Difference]]] = {
    accepted: (Action.LOAD, [Difference(KEY, "run_id", "no pointer", run_id(1), noted=False)]),
    accepted_anew: (
        Action.REPLACE,
        [
            Difference(KEY, "run_id", run_id(1), run_id(2), noted=False),
            Difference(KEY, "schema_version", "1", "2", noted=False),
        ],
    ),
    demoted: (Action.HIDE, [Difference(KEY, "status", "available", "failed", noted=False)]),
    counted_anew: (Action.REPLACE, [Difference(KEY, "record_count", "10", "11", noted=False)]),
    without_record: (Action.REPLACE, [Difference(KEY, "record_count", "no load record", "10", noted=False)]),
    # R-STATE-1: what has no state is pending.
    without_state: (Action.HIDE, [Difference(KEY, "status", "available", "pending", noted=False)]),
}


@pytest.mark.parametrize("happened", LOST, ids=lambda happened: happened.__name__)
def test_what_no_note_tells_is_found_by_comparing_everything(
    ledger: Ledger, happened: Callable[[Ledger], None]
) -> None:
    """R-WH-8: a load by the notes has nothing to do; the full one finds it, and so does verification."""
    happened(ledger)
    action, differences = LOST[happened]
    assert planned(ledger) == []
    assert planned(ledger, full=True) == [(action, KEY)]
    assert planned(ledger, Selection(customers="nobody"), full=True) == []
    assert list(ledger.pointers.differences()) == differences
    assert list(ledger.pointers.differences(Selection(customers="nobody"))) == []


@pytest.mark.parametrize("happened", [each for each in LOST if each is not counted_anew])
def test_a_full_load_heals(ledger: Ledger, happened: Callable[[Ledger], None]) -> None:
    """R-WH-8: it ends where a load would have that lost nothing, and the log tells the same."""
    happened(ledger)
    load(ledger)
    assert list(ledger.pointers.differences()) != []
    load(ledger, full=True)
    assert list(ledger.pointers.differences()) == []
    assert planned(ledger, full=True) == []
    authorities = {each.key: each.current_run_id for each in ledger.states(status=Status.SUCCESS)}
    assert seen(ledger) == authorities
    if happened is not without_state:
        assert list(verify_ledger(ledger.reader)) == []


def test_differences_say_whether_a_load_by_the_notes_resolves_them(ledger: Ledger) -> None:
    ledger.judge([accept(KEY)])
    lose(ledger, NOTES)
    ledger.judge([accept(OTHER)])
    assert [(each.key, each.noted) for each in ledger.pointers.differences()] == [(KEY, False), (OTHER, True)]
    load(ledger)
    assert [each.key for each in ledger.pointers.differences()] == [KEY]


def test_a_full_load_hides_what_is_selected(ledger: Ledger) -> None:
    ledger.judge([accept(KEY), accept(OTHER)])
    load(ledger)
    ledger.judge([reject(KEY, again="r"), reject(OTHER, again="r")])
    lose(ledger, NOTES)
    assert ledger.pointers.hide() == []
    assert ledger.pointers.hide(Selection(keys=[KEY]), full=True) == [KEY]
    assert planned(ledger, full=True) == [(Action.HIDE, OTHER)]


def test_a_cut_does_not_pin_what_was_demoted_without_a_note(ledger: Ledger) -> None:
    """R-WH-7, R-WH-8: a cut is what could be read when it was made."""
    demoted(ledger)
    assert seen(ledger) == {}
    ledger.pointers.create_cut("now")
    assert seen(ledger, cut="now") == {}
