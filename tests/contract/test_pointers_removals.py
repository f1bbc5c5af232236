"""R-WH-7: clean-up removes what nothing needs, never what something does, whoever is at work beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from sealbook.errors import InvalidInput
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.pointers.removals import ABANDONED_AFTER
from sealbook.model import PartitionKey
from sealbook.model.publication import Artifact
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import artifact, load, seen, stage, staged

RETAIN = timedelta(days=7)
AT_ONCE = timedelta(0)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The time of the book."""
    return Clock()


@pytest.fixture
def book(ledger_url: str, clock: Clock) -> Iterator[Ledger]:
    """A ledger at that time."""
    with open_ledger(ledger_url, clock=clock) as opened:
        yield opened


def removable(book: Ledger, retain: timedelta = AT_ONCE) -> list[Artifact]:
    """Return what can be removed, and check that each can be condemned by itself."""
    found = sorted(book.pointers.removable(retain), key=str)
    assert sorted(book.pointers.unneeded(found, retain), key=str) == found
    return found


def remove(book: Ledger, *artifacts: Artifact) -> None:
    """Do a whole removal."""
    assert book.pointers.condemn(artifacts, AT_ONCE) == list(artifacts)
    book.pointers.forget(artifacts)


def publish(book: Ledger, run: int, key: PartitionKey = KEY) -> None:
    """Accept a run, and load it."""
    book.judge([accept(key, run)])
    load(book)


def test_what_is_published_stays(book: Ledger) -> None:
    """R-WH-7: a pointer needs its artifact."""
    publish(book, 1)
    assert removable(book) == []
    assert book.pointers.condemn([artifact()], AT_ONCE) == []


def test_what_was_replaced_stays_for_the_retention(book: Ledger, clock: Clock) -> None:
    """R-WH-7: readers that planned before a replacement have that time to finish."""
    publish(book, 1)
    clock.now += timedelta(days=30)
    publish(book, 2)
    assert removable(book, RETAIN) == []
    assert removable(book, AT_ONCE) == [artifact(run=1)]
    clock.now += RETAIN
    assert removable(book, RETAIN) == [artifact(run=1)]
    publish(book, 3)
    assert removable(book, RETAIN) == [artifact(run=1)]


def test_what_was_hidden_stays_for_the_retention(book: Ledger, clock: Clock) -> None:
    """R-WH-7: the same for what was taken out of sight; it counts from the hiding."""
    publish(book, 1)
    book.judge([reject(run=1, again="r")])
    clock.now += timedelta(days=30)
    assert removable(book, RETAIN) == []
    book.pointers.hide()
    assert removable(book, RETAIN) == []
    clock.now += RETAIN
    assert removable(book, RETAIN) == [artifact(run=1)]


def test_what_a_cut_pins_stays(book: Ledger) -> None:
    """R-WH-7: also where the same run was published before and after the cut."""
    publish(book, 1)
    publish(book, 2)
    book.pointers.create_cut("now")
    publish(book, 3)
    publish(book, 1, OTHER)
    publish(book, 2, OTHER)
    assert removable(book) == [artifact(run=1), artifact(OTHER, 1)]
    assert book.pointers.condemn([artifact(run=2)], AT_ONCE) == []
    assert seen(book, cut="now") == {KEY: run_id(2)}
    book.pointers.drop_cut("now")
    assert removable(book) == [artifact(run=1), artifact(run=2), artifact(OTHER, 1)]


def test_what_a_load_may_be_about_to_publish_stays(book: Ledger) -> None:
    """An artifact that is staged and not yet swapped has no record; the authority says that it is wanted."""
    book.judge([accept(KEY, 1), accept(OTHER, 1)])
    assert book.pointers.unneeded([artifact(KEY, 1), artifact(OTHER, 1)], AT_ONCE) == []
    book.judge([accept(KEY, 2), reject(OTHER, 1, again="r")])
    orphans = [artifact(KEY, 1), artifact(OTHER, 1), artifact(KEY, 7), artifact(KEY, 2, "9")]
    assert book.pointers.unneeded([*orphans, artifact(KEY, 2)], AT_ONCE) == orphans
    never = PartitionKey("demo", "a", "clicks", date(2026, 1, 1))
    assert book.pointers.unneeded([artifact(never)], RETAIN) == [artifact(never)]


def test_a_removal_leaves_the_history_and_takes_the_load_record(book: Ledger) -> None:
    """Pointer history is kept; what has a load record has files."""
    publish(book, 1)
    publish(book, 2)
    remove(book, artifact(run=1))
    assert [each.run_id for each in book.pointers.history(KEY)] == [run_id(1), run_id(2)]
    assert [each.run_id for each in book.pointers.load_records()] == [run_id(2)]
    assert removable(book) == []
    assert seen(book) == {KEY: run_id(2)}


def test_a_removed_run_can_be_loaded_again(book: Ledger) -> None:
    """Rolled back to after its removal, a run is staged anew, and may then have any digest."""
    publish(book, 1)
    publish(book, 2)
    remove(book, artifact(run=1))
    book.rollback(KEY, run_id(1), actor="ann", reason="the second is worse")
    [item] = book.pointers.plan()
    assert item.digest is None
    again = staged(KEY, 1, planned=item.planned_version, content="by a newer writer")
    assert book.pointers.swap([again]).loaded == (KEY,)
    assert [each.digest for each in book.pointers.load_records() if each.run_id == run_id(1)] == [
        again.digest
    ]


def test_a_condemned_artifact_is_not_published(book: Ledger) -> None:
    """A load of a run whose files are being deleted is refused, and the next one succeeds."""
    publish(book, 1)
    publish(book, 2)
    [doomed] = book.pointers.condemn([artifact(run=1)], AT_ONCE)
    book.rollback(KEY, run_id(1), actor="ann", reason="the second is worse")
    [item] = book.pointers.plan()
    result = book.pointers.swap([stage(item)])
    assert result.removed == result.skipped == (KEY,)
    assert doomed not in [each.artifact for each in book.pointers.load_records()]
    book.pointers.forget([doomed])
    assert book.pointers.swap([stage(item)]).removed == (KEY,)  # staged before the files were deleted
    [item] = book.pointers.plan()
    assert book.pointers.swap([stage(item)]).loaded == (KEY,)
    assert seen(book) == {KEY: run_id(1)}


def test_a_load_is_refused_however_the_authority_moved_in_between(book: Ledger) -> None:
    """The authority leaves a run and comes back to it while clean-up removes it: what was staged is gone."""
    book.judge([accept(KEY, 1)])
    [item] = book.pointers.plan()
    ready = stage(item)
    publish(book, 1)
    publish(book, 2)
    remove(book, artifact(run=1))
    book.rollback(KEY, run_id(1), actor="ann", reason="to try it again")
    assert book.pointers.swap([ready]).removed == (KEY,)
    assert seen(book) == {}


def test_two_clean_ups_never_work_on_the_same_artifact(book: Ledger, clock: Clock) -> None:
    """A slow one must not delete what another forgot and a load wrote again; a dead one is replaced."""
    publish(book, 1)
    publish(book, 2)
    assert book.pointers.condemn([artifact(run=1)], AT_ONCE) == [artifact(run=1)]
    assert removable(book) == []
    assert book.pointers.condemn([artifact(run=1)], AT_ONCE) == []
    clock.now += ABANDONED_AFTER
    assert removable(book) == [artifact(run=1)]
    remove(book, artifact(run=1))
    assert removable(book) == []


@pytest.mark.parametrize("recorded", [True, False])
def test_an_interrupted_removal_is_taken_up_again(book: Ledger, clock: Clock, recorded: bool) -> None:
    """A crash after condemning leaves no partition stuck, even if its run became the authority meanwhile."""
    if recorded:
        publish(book, 1)
    else:
        book.judge([accept(KEY, 1)])
    publish(book, 2)
    assert book.pointers.condemn([artifact(run=1)], AT_ONCE) == [artifact(run=1)]
    book.rollback(KEY, run_id(1), actor="ann", reason="the second is worse")
    clock.now += ABANDONED_AFTER
    remove(book, *removable(book))
    assert load(book).loaded == (KEY,)
    assert seen(book) == {KEY: run_id(1)}


def test_forgetting_what_is_not_condemned_changes_nothing(book: Ledger) -> None:
    """A clean-up that was overtaken cannot take away what is in use again."""
    publish(book, 1)
    book.pointers.forget([artifact(run=1), artifact(OTHER, 1)])
    assert [each.artifact for each in book.pointers.load_records()] == [artifact(run=1)]
    assert book.pointers.unneeded([], AT_ONCE) == book.pointers.condemn([], AT_ONCE) == []


def test_a_retention_that_is_none_is_refused(book: Ledger) -> None:
    """Below zero, or not a time at all."""
    for wrong in (timedelta(seconds=-1), 7, None):
        with pytest.raises(InvalidInput, match="retain"):
            book.pointers.removable(wrong)  # type: ignore[arg-type]
