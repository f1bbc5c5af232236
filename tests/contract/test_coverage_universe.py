"""R-PST-6: coverage lists what is due and what the ledger knows; what is not due is not missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sealbook.book import Book
from sealbook.ledger import open_ledger
from sealbook.model import PartitionKey
from sealbook.model.freshness import Freshness
from sealbook.model.publication import CoverageKind
from sealbook.model.spans import parse_span
from sealbook.model.universe import Account
from tests.support.ledger import accept, reject
from tests.support.pointers import load
from tests.support.published import QUERY, SOURCE, open_book

NOW = datetime(2026, 1, 6, 4, tzinfo=UTC)
"""The sixth in UTC and Sydney, and still the fifth in New York."""


@pytest.fixture
def clock() -> list[datetime]:
    """The time of the ledger, which a test can change."""
    return [NOW]


@pytest.fixture
def book(ledger_url: str, tmp_path: Path, clock: list[datetime]) -> Iterator[Book]:
    with open_book(ledger_url, tmp_path / "warehouse") as opened:
        vars(opened)["ledger"] = open_ledger(ledger_url, clock=lambda: clock[0])
        yield opened


def expect(book: Book, *accounts: Account, due: str | None = None) -> None:
    """Configure these accounts, and when their days are due."""
    freshness = None if due is None else Freshness((parse_span("due", due),))
    source = replace(
        book.settings.sources[SOURCE],
        customers=tuple(each.customer_id for each in accounts),
        accounts={each.customer_id: each for each in accounts},
        freshness=freshness,
    )
    book.settings = replace(book.settings, sources={SOURCE: source})


def partition(customer_id: str, day: int) -> PartitionKey:
    return PartitionKey(SOURCE, customer_id, QUERY, date(2026, 1, day))


def kinds(book: Book, **asked: Any) -> dict[str, list[tuple[int, str]]]:
    """Return the days of January that are told of each customer, with their kinds."""
    told: dict[str, list[tuple[int, str]]] = {}
    for each in book.coverage(QUERY, **asked):
        told.setdefault(each.customer_id, []).append((each.logical_date.day, each.kind))
    return told


def test_an_account_is_covered_from_its_first_day_to_the_last_that_is_due(book: Book) -> None:
    first = date(2026, 1, 3)
    expect(
        book,
        Account("east", ZoneInfo("Australia/Sydney"), first),
        Account("ended", UTC, date(2026, 1, 2), date(2026, 1, 3)),
        Account("utc", UTC, first),
        Account("west", ZoneInfo("America/New_York"), first),
        Account("plain"),
    )
    assert kinds(book) == {
        "east": [(3, "missing"), (4, "missing"), (5, "missing")],
        "ended": [(2, "missing"), (3, "missing")],
        "utc": [(3, "missing"), (4, "missing"), (5, "missing")],
        "west": [(3, "missing"), (4, "missing")],
    }


def test_a_plain_customer_is_covered_from_the_first_day_that_is_known(book: Book) -> None:
    expect(book, Account("a"), Account("b"))
    book.ledger.judge([reject(partition("a", 4), 1)])
    assert kinds(book) == {"a": [(4, "failed"), (5, "missing")], "b": [(4, "missing"), (5, "missing")]}
    book.ledger.judge([accept(partition("b", 3), 1)])
    assert kinds(book, customers="a") == {"a": [(3, "missing"), (4, "failed"), (5, "missing")]}


def test_a_day_that_is_asked_for_and_not_due_is_told_as_such(book: Book) -> None:
    expect(book, Account("a", UTC, date(2026, 1, 5), date(2026, 1, 7)), due="6h")
    assert kinds(book) == {}
    assert kinds(book, since=date(2026, 1, 5)) == {}
    told = book.coverage(QUERY, since="2026-01-01", until="2026-01-31")
    assert [(each.logical_date.day, each.kind, each.why) for each in told] == [
        (5, CoverageKind.NOT_DUE, "it is due from 2026-01-06 06:00 UTC on"),
        (6, CoverageKind.NOT_DUE, "it is due from 2026-01-07 06:00 UTC on"),
        (7, CoverageKind.NOT_DUE, "it is due from 2026-01-08 06:00 UTC on"),
    ]


def test_what_the_ledger_knows_is_told_whether_it_is_expected_or_not(book: Book) -> None:
    """Days before the first, days that are not due, and customers that are not configured any more."""
    book.ledger.judge([accept(partition(customer, 2), 1) for customer in ("a", "gone")])
    book.ledger.judge([accept(partition("a", 6), 1)])
    load(book.ledger)
    expect(book, Account("a", UTC, date(2026, 1, 4)))
    assert kinds(book) == {
        "a": [(2, "published"), (4, "missing"), (5, "missing"), (6, "published")],
        "gone": [(2, "published")],
    }


def test_at_a_cut_what_was_due_when_it_was_made_counts(book: Book, clock: list[datetime]) -> None:
    book.ledger.judge([accept(partition("a", 3), 1)])
    load(book.ledger)
    expect(book, Account("a"), Account("b", first_day=date(2026, 1, 4)))
    book.ledger.pointers.create_cut("then")
    clock[0] = NOW.replace(day=9)
    told = {"a": [(3, "published"), (4, "missing"), (5, "missing")], "b": [(4, "missing"), (5, "missing")]}
    assert kinds(book, cut="then") == told
    assert kinds(book)["b"][-1] == (8, "missing")
