"""Drift as a value: what a comparison comes to, and how old a day is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from sealbook.model.drift import BEFORE_END, Drift, age_of, age_text, relative
from sealbook.model.freshness import day_end
from sealbook.model.keys import RunId, run_time
from sealbook.model.run_diff import ColumnDiff, Number, RowsDiff
from tests.support.ledger import KEY, run_id

HOUR = timedelta(hours=1)
numbers = st.integers() | st.floats() | st.decimals(allow_nan=False, allow_infinity=False, places=2)


def diff(added: int = 0, removed: int = 0, changed: int = 0, *columns: ColumnDiff) -> RowsDiff:
    return RowsDiff(("id",), added, removed, changed, unchanged=10, columns=columns)


def column(before: Number | None, after: Number | None) -> ColumnDiff:
    return ColumnDiff("clicks", 0, 0, 0, before, after)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (10, 10, 0.0),
        (10, 11, 0.1),
        (-10, -9, 0.1),
        (10, 0, 1.0),
        (1, 1_000, 1.0),
        (0, 5, 1.0),
        (0, 0, 0.0),
        (None, None, 0.0),
        (None, 2, 1.0),
        (Decimal("2.00"), Decimal("1.50"), 0.25),
    ],
)
def test_relative(before: Number | None, after: Number | None, expected: float) -> None:
    assert relative(before, after) == pytest.approx(expected)


def test_change_is_the_largest_of_all() -> None:
    assert Drift.of(run_id(1), HOUR, diff()).change == 0
    assert Drift.of(run_id(1), HOUR, diff(changed=5)).change == 0  # in what is no number
    assert Drift.of(run_id(1), HOUR, diff(1, 2, 8)).change == pytest.approx(3 / 20)
    found = Drift.of(run_id(1), HOUR, diff(1, 0, 0, column(4, 5)))
    assert (found.rows, found.added, found.change, found.totals) == (10, 1, 0.25, {"clicks": (4, 5)})


@given(st.integers(0, 99), st.integers(0, 99), numbers, numbers)
def test_change_is_a_share_whatever_is_compared(
    added: int, removed: int, before: Number, after: Number
) -> None:
    """Also of what is not a number, which tells nothing."""
    found = Drift.of(run_id(1), HOUR, diff(added, removed, 0, column(before, after)))
    assert 0 <= found.change <= 1
    assert all(each == each for pair in found.totals.values() for each in pair)


def test_an_age_is_that_of_the_day_where_the_account_is() -> None:
    opened = RunId(str(ULID.from_datetime(datetime(2026, 1, 2, 6, 59, tzinfo=UTC))))
    assert run_time(opened) == datetime(2026, 1, 2, 6, 59, tzinfo=UTC)
    assert age_of(opened, day_end(KEY.logical_date, UTC)) == 6 * HOUR
    assert age_of(opened, day_end(KEY.logical_date, ZoneInfo("America/Los_Angeles"))) == -2 * HOUR


@pytest.mark.parametrize(
    ("age", "said"), [(BEFORE_END, "not over"), (0 * HOUR, "0h"), (6 * HOUR, "6h"), (72 * HOUR, "3d")]
)
def test_ages_as_people_say_them(age: timedelta, said: str) -> None:
    assert age_text(age) == said
