"""Streams of changes: batches that are the same when they are asked for again, on each ledger (R-CON-5)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.book import Book
from sealbook.errors import IllegalMove, NotFound
from sealbook.ledger import Ledger
from sealbook.model.selection import Selection
from sealbook.read.following import Following, StreamPosition
from tests.support.histories import STEPS, History, Rows, Step, applied
from tests.support.ledger import KEY, OTHER, accept, reject
from tests.support.pointers import load
from tests.support.published import open_book

MOST = st.one_of(st.none(), st.integers(1, 3))


@pytest.fixture
def book(ledger_url: str, tmp_path: Path) -> Iterator[Book]:
    with open_book(ledger_url, tmp_path / "warehouse") as opened:
        yield opened


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, most=MOST, net=st.booleans(), every=st.integers(1, 9))
def test_batches_replayed_after_any_history_are_the_same_and_add_up(
    book: Book, steps: list[Step], most: int | None, net: bool, every: int
) -> None:
    history = History(book)

    def following() -> Following:
        return Following(book.ledger.reader.pointers, history.selection, net=net)

    stream = following()
    position, rows = stream.start(None), Rows()
    batches = []

    def take_batch() -> bool:
        """Take one batch, if something has changed; its position goes through a checkpoint."""
        nonlocal position, rows
        following_position = StreamPosition.of_offset(stream.next(position, most).to_offset())
        if following_position == position:
            return False
        batch = stream.between(position, following_position)
        assert batch
        assert most is None or len(batch) <= most
        rows = applied(rows, batch)
        batches.append((position, following_position, list(batch)))
        position = following_position
        return True

    for place, step in enumerate([("accept", 0, 1), ("load", 0, 0), *steps]):
        try:
            history.take(step)
        except (IllegalMove, NotFound):
            continue
        if place % every == 0:
            take_batch()
    while take_batch():
        pass
    assert rows == history.rows(book)
    for start, end, batch in batches:
        assert list(following().between(start, end)) == batch


def test_a_batch_has_no_more_than_it_may_and_each_change_is_in_one(ledger: Ledger) -> None:
    for run in (1, 2):
        ledger.judge([accept(KEY, run), accept(OTHER, run)])
        load(ledger)
    for net, changes in ((False, 4), (True, 2)):
        stream = Following(ledger.reader.pointers, Selection(source=KEY.source), net=net)
        positions = [stream.start(None)]
        while (following := stream.next(positions[-1], 1)) != positions[-1]:
            positions.append(following)
        batches = [stream.between(*each) for each in pairwise(positions)]
        assert [len(each) for each in batches] == [1] * changes
        whole = stream.between(positions[0], stream.next(positions[0], None))
        assert [each for batch in batches for each in batch] == list(whole)


def test_what_others_publish_makes_no_batch(ledger: Ledger) -> None:
    only = Selection(source=KEY.source, queries=KEY.query_name, since=OTHER.logical_date)
    stream = Following(ledger.reader.pointers, only, net=False)
    start = stream.start(None)
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    assert stream.next(start, None) == start
    ledger.judge([accept(OTHER, 1)])
    load(ledger)
    assert [each.key for each in stream.between(start, stream.next(start, None))] == [OTHER]


def test_a_stream_of_what_is_there_goes_no_further(ledger: Ledger) -> None:
    """Also one that began a part of it: it ends that first."""
    stream = Following(ledger.reader.pointers, Selection(source=KEY.source), net=False)
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    begun = stream.next(stream.start(None), 1)
    end = stream.now()
    ledger.judge([reject(KEY, 1, again="a")])
    position = stream.next(begun, None, end)
    assert [each.key for each in stream.between(begun, position)] == [OTHER]
    assert stream.next(position, None, end) == position
    assert stream.next(position, None) != position


def test_a_stream_begins_after_a_token_or_a_cut(ledger: Ledger) -> None:
    stream = Following(ledger.reader.pointers, Selection(source=KEY.source), net=False)
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.pointers.create_cut("month_end")
    assert stream.start("month_end") == stream.start(stream.now()) != stream.start(None)
    assert stream.next(stream.start("month_end"), None) == stream.start("month_end")
