"""What replacements change is recorded once, with the swap, and summed up by query and age."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import RunId
from sealbook.model.drift import BEFORE_END, Drift, DriftSum, Totals, age_of
from sealbook.model.freshness import day_end
from sealbook.model.selection import Selection
from tests.support.drifts import publish, run_after
from tests.support.ledger import KEY, OTHER
from tests.support.pointers import staged_run

DAY = timedelta(days=1)
END = day_end(KEY.logical_date, UTC)


@pytest.fixture
def book(ledger_url: str) -> Iterator[Ledger]:
    """A ledger long after the days of KEY and OTHER."""
    with open_ledger(ledger_url, clock=lambda: datetime(2027, 1, 1, tzinfo=UTC)) as opened:
        yield opened


def changed(run: RunId, age: timedelta, **counts: int) -> Drift:
    """Return a drift of ten rows, whose change is a tenth for each row."""
    return Drift(run, age, rows=10, change=sum(counts.values()) / 10, **counts)  # type: ignore[arg-type]


def sums(book: Ledger, selection: Selection | None = None, *, by_customer: bool = False) -> list[DriftSum]:
    return book.pointers.drift_sums(selection or Selection(), by_customer=by_customer)


def test_what_replaces_nothing_has_no_drift(book: Ledger) -> None:
    publish(book, run_after(DAY), changed(run_after(DAY), DAY))
    assert sums(book) == []


def test_a_replacement_is_recorded_once(book: Ledger) -> None:
    first, second = run_after(DAY), run_after(3 * DAY)
    publish(book, first)
    drift = replace(changed(first, 3 * DAY, added=1, changed=2), totals={"clicks": (10, 12)})
    assert publish(book, second, drift).replaced == (KEY,)
    assert publish(book, second, drift).unchanged == (KEY,)
    expected = DriftSum(
        source=KEY.source,
        query_name=KEY.query_name,
        customer_id=None,
        age=3 * DAY,
        replacements=1,
        compared=1,
        unchanged=0,
        rows=10,
        added=1,
        removed=0,
        changed=2,
        change=pytest.approx(0.3),  # type: ignore[arg-type]
        columns={"clicks": pytest.approx(0.2)},  # type: ignore[dict-item]
    )
    assert sums(book) == [expected]
    assert sums(book, by_customer=True) == [replace(expected, customer_id=KEY.customer_id)]
    book.rollback(KEY, first, actor="ann", reason="to see")
    book.rollback(KEY, second, actor="ann", reason="to see")
    assert sums(book) == [expected]


def test_what_is_not_replaced_is_not_recorded(book: Ledger) -> None:
    """A swap that comes too late changes nothing, and says nothing of drift."""
    first, second, third = (run_after(days * DAY) for days in (1, 2, 3))
    publish(book, first)
    late = replace(staged_run(KEY, second), drift=changed(first, 2 * DAY, added=1))
    publish(book, third, changed(first, 3 * DAY))
    assert book.pointers.swap([late]).moved == (KEY,)
    assert [each.age for each in sums(book)] == [3 * DAY]


def test_another_run_was_published_meanwhile(book: Ledger) -> None:
    """What was compared is not what is replaced: that is said, and nothing else."""
    first, second, third = (run_after(days * DAY) for days in (1, 2, 3))
    publish(book, first)
    publish(book, second, changed(first, 2 * DAY))
    publish(book, third, changed(first, 3 * DAY, removed=5))
    found = sums(book)
    assert [(each.age, each.compared, each.removed) for each in found] == [(2 * DAY, 1, 0), (3 * DAY, 0, 0)]
    assert (found[1].replacements, found[1].share_unchanged, found[0].share_unchanged) == (1, None, 1.0)


def test_sums_are_by_query_and_age_of_what_is_chosen(book: Ledger) -> None:
    for key in (KEY, OTHER):
        runs = [
            run_after(age, key)
            for age in (-5 * timedelta(hours=1), timedelta(hours=7), 8 * DAY, 13 * DAY, 300 * DAY)
        ]
        publish(book, runs[0], key=key)
        for place, (before, run) in enumerate(pairwise(runs)):
            age = age_of(run, day_end(key.logical_date, UTC))
            publish(book, run, changed(before, age, changed=place), key)
    found = sums(book)
    assert [each.age for each in found] == [timedelta(hours=6), 7 * DAY, 90 * DAY]
    assert [(each.replacements, each.unchanged, each.changed) for each in found] == [
        (2, 2, 0),
        (4, 0, 6),
        (2, 0, 6),
    ]
    assert found[1].change == pytest.approx(0.15)
    assert [each.replacements for each in sums(book, Selection(keys=[KEY]))] == [1, 2, 1]
    assert sums(book, Selection(queries="other")) == []


def test_a_day_that_was_not_over_has_an_age_of_its_own(book: Ledger) -> None:
    runs = [run_after(-timedelta(hours=hours)) for hours in (9, 3)]
    publish(book, runs[0])
    publish(book, runs[1], changed(runs[0], age_of(runs[1], END)))
    assert [each.age for each in sums(book)] == [BEFORE_END]


def test_totals_of_columns_are_means_over_all_that_was_compared(book: Ledger) -> None:
    """Also of decimals, of what was nothing before, and of what grew beyond all measure."""
    runs = [run_after(DAY + place * timedelta(hours=1)) for place in range(4)]
    publish(book, runs[0])
    totals: list[Totals] = [
        {"cost": (Decimal("10.50"), Decimal("5.25")), "clicks": (0, 3)},
        {"cost": (2.0, 200.0), "clicks": (None, 1)},
        {},
    ]
    for before, run, each in zip(runs, runs[1:], totals, strict=False):
        publish(book, run, replace(changed(before, DAY), totals=each))
    [found] = sums(book)
    assert found.columns == {"clicks": pytest.approx(2 / 3), "cost": pytest.approx(0.5)}
