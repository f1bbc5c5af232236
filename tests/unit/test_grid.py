"""The grid: days that do not fit are binned, a bin shows its worst, and the worst rows come first."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from sealbook.model.display import Cell
from sealbook.model.standing import BLANK
from sealbook.model.status_line import DayCells
from sealbook.views.grid import Bin, Grid, Step, bins, fitting, worst

FIRST = date(2026, 1, 1)  # a Thursday


def cells(letters: str, customer: str = "a", query: str = "q", source: str = "demo") -> DayCells:
    return DayCells(source, customer, query, letters)


def last(letters: str) -> date:
    return FIRST + timedelta(days=len(letters) - 1)


def test_bins_begin_on_mondays_first_days_and_new_years() -> None:
    end = date(2027, 1, 2)
    assert bins(FIRST, date(2026, 1, 6), Step.WEEK) == [
        Bin(FIRST, date(2026, 1, 4)), Bin(date(2026, 1, 5), date(2026, 1, 6)),
    ]  # fmt: skip
    months = bins(FIRST, end, Step.MONTH)
    assert [each.first.month for each in months] == [*range(1, 13), 1]
    assert months[1] == Bin(date(2026, 2, 1), date(2026, 2, 28))
    assert bins(FIRST, end, Step.YEAR) == [Bin(FIRST, date(2026, 12, 31)), Bin(date(2027, 1, 1), end)]


@pytest.mark.parametrize("step", Step)
def test_every_day_is_in_one_bin(step: Step) -> None:
    found = bins(FIRST, FIRST + timedelta(days=800), step)
    days = [one.first + timedelta(days=n) for one in found for n in range((one.last - one.first).days + 1)]
    assert days == [FIRST + timedelta(days=number) for number in range(801)]


@pytest.mark.parametrize(
    ("days", "room", "step", "columns"),
    [(60, 60, Step.DAY, 60), (61, 60, Step.WEEK, 10), (700, 60, Step.MONTH, 24), (3_000, 60, Step.YEAR, 9)],
)
def test_the_finest_step_that_fits(days: int, room: int, step: Step, columns: int) -> None:
    found, shown = fitting(FIRST, FIRST + timedelta(days=days - 1), room)
    assert (found, len(shown)) == (step, columns)


def test_where_nothing_fits_the_latest_are_shown() -> None:
    step, shown = fitting(date(1900, 1, 1), date(2026, 1, 1), 10)
    assert (step, len(shown), shown[-1].last) == (Step.YEAR, 10, date(2026, 1, 1))


def test_a_bin_shows_its_worst() -> None:
    order = "".join(cell.letter for cell in Cell) + BLANK
    for place, letter in enumerate(order):
        assert worst(reversed(order[place:])) == letter
    letters = "■■·■" + "■xS■■■■" + "~"  # up to Sunday, a week, a Monday
    grid = Grid.of([cells(letters)], FIRST, last(letters), width=len("qa") + 4)
    assert (grid.step, [row.letters for row in grid.rows]) == (Step.WEEK, ["·x~"])
    assert grid.rows[0].counts == {
        Cell.MATERIALIZED: 8, Cell.MISSING: 1, Cell.FAILED: 1, Cell.STALE: 1, Cell.PROVISIONAL: 1,
    }  # fmt: skip
    assert [cell.letter for cell in grid.cells] == ["x", "·", "~"], "a legend of what is shown"


def test_the_worst_rows_and_blocks_come_first() -> None:
    rows = [
        cells("■■■", "a", "good"), cells("·■■", "b", "good"),
        cells("SSS", "a", "bad"), cells("■W■", "b", "bad"), cells("  x", "c", "bad"),
    ]  # fmt: skip
    grid = Grid.of(rows, FIRST, last("■■■"))
    assert {title: [row.customer_id for row in of] for title, of in grid.blocks.items()} == {
        "bad": ["b", "c", "a"], "good": ["b", "a"],
    }  # fmt: skip
    assert [row.is_good for row in grid.rows] == [False] * 4 + [True]


def test_of_one_customer_queries_go_down() -> None:
    grid = Grid.of([cells("■", query="p"), cells("x", query="q")], FIRST, FIRST)
    assert {title: [row.query_name for row in of] for title, of in grid.blocks.items()} == {"a": ["q", "p"]}


def test_queries_of_the_same_name_of_two_sources_are_two_blocks() -> None:
    rows = [cells("■"), cells("x", "b"), cells("·", source="shop")]
    grid = Grid.of(rows, FIRST, FIRST, width=80)
    assert {title: [row.customer_id for row in of] for title, of in grid.blocks.items()} == {
        "demo/q": ["b", "a"], "shop/q": ["a"],
    }  # fmt: skip
