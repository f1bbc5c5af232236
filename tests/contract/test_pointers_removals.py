"""R-WH-7: clean-up removes what nothing needs, never what something does, whoever is at work beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from sealbook.errors import Conflict, InvalidInput
from sealbook.ledger import Ledger, open_ledger
from sealbook.model import PartitionKey
from sealbook.model.artifacts import Artifact, Condemned
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


def condemn(book: Ledger, *artifacts: Artifact) -> list[Condemned]:
    """Begin a removal of artifacts, all of which may go."""
    condemned = book.pointers.condemn(artifacts, AT_ONCE)
    assert [each.artifact for each in condemned] == list(artifacts)
    return condemned


def remove(book: Ledger, *artifacts: Artifact) -> None:
    """Do a whole removal."""
    book.pointers.forget(condemn(book, *artifacts))


def roll_back(book: Ledger, run: int) -> None:
    """Give authority back to a run."""
    book.rollback(KEY, run_id(run), actor="ann", reason="the other is worse")


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


def test_a_removal_takes_files_and_leaves_history_and_records(book: Ledger) -> None:
    """R-WH-2: load records are for ever; what must have files is another question."""
    publish(book, 1)
    publish(book, 2)
    before = list(book.pointers.load_records())
    remove(book, artifact(run=1))
    assert [each.run_id for each in book.pointers.history(KEY)] == [run_id(1), run_id(2)]
    assert list(book.pointers.load_records()) == before
    assert [each.artifact for each in book.pointers.stored_artifacts()] == [artifact(run=2)]
    assert removable(book) == []
    assert seen(book) == {KEY: run_id(2)}


def test_a_removed_run_is_loaded_again_with_the_same_record(book: Ledger, clock: Clock) -> None:
    """R-WH-2: rolled back to after its removal, a run is staged anew: the next copy of the same bytes."""
    publish(book, 1)
    before = list(book.pointers.load_records())
    publish(book, 2)
    for copy in (1, 2):
        clock.now += RETAIN
        remove(book, artifact(run=1))
        roll_back(book, 1)
        [item] = book.pointers.plan()
        assert item.earlier is not None
        assert (item.earlier.kept, item.copy, item.earlier.digest) == (False, copy, staged(run=1).digest)
        with pytest.raises(Conflict, match="loaded before with digest"):
            book.pointers.swap([staged(KEY, 1, copy=copy, content="by a newer writer")])
        assert book.pointers.swap([stage(item)]).loaded == (KEY,)
        assert list(book.pointers.load_records())[:1] == before
        [published] = book.pointers.published()
        assert (published.run_id, published.copy) == (run_id(1), copy)
        publish(book, copy + 2)


def test_a_load_takes_over_from_a_clean_up_that_died(book: Ledger) -> None:
    """R-WH-7: condemned and never heard of again, a run is published at once, by files of other names."""
    publish(book, 1)
    publish(book, 2)
    [doomed] = condemn(book, artifact(run=1))
    roll_back(book, 1)
    [item] = book.pointers.plan()
    assert item.copy == doomed.copy + 1
    assert book.pointers.swap([stage(item)]).loaded == (KEY,)
    assert seen(book) == {KEY: run_id(1)}
    book.pointers.forget([doomed])  # it was only slow
    assert [each.artifact for each in book.pointers.stored_artifacts()] == [artifact(run=1), artifact(run=2)]
    assert removable(book) == [artifact(run=2)]


def test_a_load_that_was_planned_before_is_refused(book: Ledger) -> None:
    """The authority leaves a run and comes back to it while clean-up removes it: what was staged is gone."""
    book.judge([accept(KEY, 1)])
    [item] = book.pointers.plan()
    ready = stage(item)
    publish(book, 2)
    [doomed] = condemn(book, artifact(run=1))
    roll_back(book, 1)
    result = book.pointers.swap([ready])
    assert result.removed == result.skipped == (KEY,)
    book.pointers.forget([doomed])
    assert book.pointers.swap([ready]).removed == (KEY,)
    assert seen(book) == {}
    assert load(book).loaded == (KEY,)
    assert seen(book) == {KEY: run_id(1)}


def test_two_clean_ups_may_work_on_the_same_artifact(book: Ledger) -> None:
    """Both delete the same copies; the slower one touches none that a load wrote since."""
    publish(book, 1)
    publish(book, 2)
    first = condemn(book, artifact(run=1))
    assert removable(book) == [artifact(run=1)]
    assert condemn(book, artifact(run=1)) == first
    book.pointers.forget(first)
    assert removable(book) == []
    roll_back(book, 1)
    load(book)
    book.pointers.forget(first)
    assert seen(book) == {KEY: run_id(1)}
    assert book.pointers.condemn([artifact(run=1)], AT_ONCE) == []


@pytest.mark.parametrize("recorded", [True, False])
def test_an_interrupted_removal_is_taken_up_again(book: Ledger, recorded: bool) -> None:
    """A crash after condemning leaves no partition stuck, even if its run became the authority meanwhile."""
    if recorded:
        publish(book, 1)
    else:
        book.judge([accept(KEY, 1)])
    publish(book, 2)
    [doomed] = condemn(book, artifact(run=1))
    roll_back(book, 1)
    assert artifact(run=1) in removable(book)
    assert condemn(book, artifact(run=1)) == [doomed]
    book.pointers.forget([doomed])
    assert load(book).loaded == (KEY,)
    assert seen(book) == {KEY: run_id(1)}


def test_an_orphan_is_condemned_as_what_a_load_would_have_staged(book: Ledger) -> None:
    """Left behind twice by loads that crashed, each time as another copy."""
    book.judge([accept(KEY, 1)])
    publish(book, 2)
    assert [each.copy for each in condemn(book, artifact(run=1))] == [0]
    book.pointers.forget([Condemned(artifact(run=1), 0)])
    roll_back(book, 1)
    [item] = book.pointers.plan()
    assert (item.copy, item.earlier) == (1, None)
    book.judge([accept(KEY, 3)])
    assert [each.copy for each in condemn(book, artifact(run=1))] == [1]


def test_forgetting_what_is_not_condemned_changes_nothing(book: Ledger) -> None:
    """A clean-up that was overtaken cannot take away what is in use again."""
    publish(book, 1)
    book.pointers.forget([Condemned(artifact(run=1), 0), Condemned(artifact(OTHER, 1), 0)])
    assert [each.artifact for each in book.pointers.stored_artifacts()] == [artifact(run=1)]
    assert book.pointers.unneeded([], AT_ONCE) == []
    assert book.pointers.condemn([], AT_ONCE) == []


def test_a_loader_days_behind_makes_nothing_removable(ledger_url: str) -> None:
    """R-WH-7, R-STATE-11: what was replaced a moment ago stays, whatever that loader thinks the time is."""
    now = Clock()
    with (
        open_ledger(ledger_url, clock=now) as book,
        open_ledger(ledger_url, clock=lambda: now.now - timedelta(days=8)) as behind,
    ):
        publish(book, 1)
        book.judge([accept(KEY, 2)])
        load(behind)
        [first, second] = book.pointers.history(KEY)
        assert first.published_at <= second.published_at == first.closed_at
        assert removable(book, RETAIN) == removable(behind, RETAIN) == []
        now.now += RETAIN
        assert removable(book, RETAIN) == [artifact(run=1)]
        assert removable(behind, RETAIN) == []  # until it has heard of that time
        publish(book, 3)
        assert removable(behind, RETAIN) == [artifact(run=1)]


def test_new_files_are_noted_and_nothing_else(book: Ledger) -> None:
    """What was damaged and is staged again under other names keeps its record; other bytes are not taken."""
    publish(book, 1)
    before = list(book.pointers.load_records())
    book.pointers.refile([staged(KEY, 1, copy=1, content="others")])
    assert [each.copy for each in book.pointers.published()] == [0]
    book.pointers.refile([staged(KEY, 1, copy=1)])
    assert [each.copy for each in book.pointers.published()] == [1]
    book.pointers.refile([staged(KEY, 1, copy=0)])
    assert [each.copy for each in book.pointers.published()] == [1]
    assert list(book.pointers.load_records()) == before


def test_a_condemned_copy_is_not_noted(book: Ledger) -> None:
    """A rebuild that a clean-up came before leaves the files to it."""
    publish(book, 1)
    publish(book, 2)
    [doomed] = condemn(book, artifact(run=1))
    book.pointers.refile([staged(KEY, 1, copy=doomed.copy)])
    assert [each.artifact for each in book.pointers.stored_artifacts()] == [artifact(run=2)]


def test_a_retention_that_is_none_is_refused(book: Ledger) -> None:
    """Below zero, or not a time at all."""
    for wrong in (timedelta(seconds=-1), 7, None):
        with pytest.raises(InvalidInput, match="retain"):
            book.pointers.removable(wrong)  # type: ignore[arg-type]
