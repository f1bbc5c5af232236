"""Acceptance criteria 2 and 4 of the warehouse contract, on each database and each kind of storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealbook.book import Book
from sealbook.ledger import Ledger
from sealbook.model.artifacts import Action
from sealbook.model.publication import CoverageKind
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import load, planned, seen
from tests.support.published import CONTRACTS, QUERY, key, open_book, publish, write

KEYS = [key(customer) for customer in range(3)]


@pytest.fixture
def book(raw_url: str, tmp_path: Path) -> Iterator[Book]:
    """A book on each kind of storage."""
    with open_book(f"sqlite:///{tmp_path}/book.db", raw_url) as opened:
        yield opened


@pytest.mark.parametrize("before", ["success", "failed", "pending"])
def test_criterion_2_any_change_of_authority_replaces_the_whole_partition(
    ledger: Ledger, before: str
) -> None:
    """ "Authority changes when current_run_id changes, regardless of whether the previous row was `success`,
    `pending`, or `failed`." Only that partition is touched."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    if before != "success":
        ledger.judge([reject(KEY, 1, again="r")])
    if before == "pending":
        ledger.requeue([KEY], actor="ann", reason="again")

    ledger.judge([accept(KEY, 2)])

    assert planned(ledger) == [(Action.REPLACE, KEY)]
    load(ledger)
    assert seen(ledger) == {KEY: run_id(2), OTHER: run_id(1)}


def test_criterion_2_a_demotion_hides_before_it_can_be_seen(ledger: Ledger) -> None:
    """ "the warehouse must mark the logical partition as `unavailable` and remove (or hide) its rows before
    exposing the failure. No stale data may remain visible." """
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)

    ledger.judge([reject(KEY, 1, again="r")])

    assert seen(ledger) == {OTHER: run_id(1)}
    load(ledger)
    pointer = ledger.pointers.pointer(KEY)
    assert pointer is not None
    assert pointer.status == "unavailable"
    assert seen(ledger) == {OTHER: run_id(1)}


def test_criterion_4_consumers_rely_solely_on_the_pointer(book: Book) -> None:
    """ "Consumers rely solely on the warehouse pointer derived from `PartitionState`, ensuring consistent
    guarantees independent of physical storage choices."

    What else lies in the storage is nobody's business: a newer run that is staged and accepted, but not
    swapped; a partition that nobody has judged; the old run, once it is replaced.
    """
    publish(book.ledger, book.settings.warehouse, KEYS[:2])
    before = book.table(QUERY)
    book.ledger.judge([accept(KEYS[0], 2)])
    staged = [write(book.settings.warehouse, each, 2, contract=CONTRACTS["1"]) for each in (KEYS[0], KEYS[2])]

    assert book.table(QUERY) == before
    assert book.sql(f"select distinct run_id from {QUERY}").to_pylist() == [{"run_id": run_id(1)}]
    kinds = [each.kind for each in book.coverage(QUERY, until=KEYS[0].logical_date)]
    assert kinds == [CoverageKind.BEHIND, CoverageKind.PUBLISHED, CoverageKind.MISSING]

    swapped = book.ledger.pointers.swap(staged)

    assert (swapped.replaced, swapped.moved) == ((KEYS[0],), (KEYS[2],))
    question = f"select customer_id c, run_id r, count(*) n from {QUERY} group by all order by all"
    assert book.sql(question).to_pylist() == [
        {"c": "c0", "r": run_id(2), "n": 10},
        {"c": "c1", "r": run_id(1), "n": 10},
    ]
