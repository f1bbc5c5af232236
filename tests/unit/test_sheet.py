"""The whole grid: a character says both facts, the worst of a bin shows, rows and columns add up."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from sealbook.model.display import Cell
from sealbook.model.standing import BLANK, BY_CODE, STANDINGS, Standing, worst_code
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.status_line import DayCells
from sealbook.views.grid import Step
from sealbook.views.sheet import Sheet
from sealbook.views.standings import words_of

NOW = datetime(2026, 1, 20, tzinfo=UTC)
FIRST = date(2026, 1, 1)  # a Thursday

GOOD = Standing(Cell.MATERIALIZED, Availability.PUBLISHED, AttemptOutcome.SUCCEEDED)
BEHIND = Standing(Cell.MATERIALIZED, Availability.BEHIND, AttemptOutcome.SUCCEEDED)
FAILED = Standing(Cell.FAILED, Availability.NONE, AttemptOutcome.FAILED)
KEPT = Standing(Cell.LAST_ATTEMPT_FAILED, Availability.PUBLISHED, AttemptOutcome.FAILED)
MISSING = Standing(Cell.MISSING)


def row(customer: str, *standings: Standing | None, query: str = "orders") -> DayCells:
    codes = "".join(BLANK if each is None else each.code for each in standings)
    return DayCells("demo", customer, query, codes)


def sheet(*rows: DayCells) -> Sheet:
    return Sheet.of(NOW, (FIRST, FIRST + timedelta(days=len(rows[0].letters) - 1)), rows)


def test_every_standing_has_a_character_of_its_own_that_json_and_html_leave_alone() -> None:
    assert len({each.code for each in STANDINGS}) == len(STANDINGS) == len(BY_CODE)
    assert all(BY_CODE[each.code] == each for each in STANDINGS)
    assert not {each.code for each in STANDINGS} & {*BLANK, *"<>&\"'\\`"}
    assert all(each.code.isascii() and each.code.isprintable() for each in STANDINGS)


def test_characters_stay_what_they_are() -> None:
    """A page that was opened before an upgrade reads what it is sent afterwards."""
    assert [each.code for each in (GOOD, BEHIND, KEPT, FAILED, MISSING)] == [".", "2", "h", "m", "^"]


def test_the_worst_of_some_days_is_that_of_the_worst_cell_then_of_what_consumers_lack() -> None:
    for better, worse in zip(STANDINGS[1:], STANDINGS, strict=False):
        assert worst_code(better.code + worse.code + BLANK) == worse.code
    assert worst_code(GOOD.code + BEHIND.code) == BEHIND.code
    assert worst_code(BLANK * 3) == worst_code("") == BLANK


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (GOOD, "readable: consumers get the newest run, the last attempt succeeded"),
        (KEPT, "last attempt failed: consumers get the newest run, the last attempt failed"),
        (FAILED, "failed: consumers get nothing, the last attempt failed"),
        (MISSING, "missing: consumers get nothing, nothing was attempted"),
    ],
)
def test_words_say_both_facts(standing: Standing, words: str) -> None:
    assert words_of(standing) == words


def test_rows_come_worst_first_and_totals_add_up_both_ways() -> None:
    found = sheet(
        row("a", GOOD, GOOD, MISSING), row("b", FAILED, GOOD, KEPT), row("c", None, FAILED, FAILED)
    ).page()
    assert [each.customer_id for each in found.rows] == ["c", "b", "a"]
    assert found.rows[0].counts == {Cell.FAILED: 2}
    assert [dict(each) for each in found.column_totals] == [
        {Cell.MATERIALIZED: 1, Cell.FAILED: 1},
        {Cell.MATERIALIZED: 2, Cell.FAILED: 1},
        {Cell.MISSING: 1, Cell.LAST_ATTEMPT_FAILED: 1, Cell.FAILED: 1},
    ]
    assert found.total == {
        Cell.FAILED: 3, Cell.LAST_ATTEMPT_FAILED: 1, Cell.MISSING: 1, Cell.MATERIALIZED: 3,
    }  # fmt: skip


def test_a_week_shows_its_worst_and_counts_its_days() -> None:
    found = sheet(row("a", GOOD, GOOD, KEPT, GOOD, BEHIND, GOOD, GOOD)).page(Step.WEEK)
    assert [(each.first.day, each.last.day) for each in found.columns] == [(1, 4), (5, 7)]
    assert found.rows[0].letters == KEPT.code + BEHIND.code
    assert [sum(each.values()) for each in found.column_totals] == [4, 3]


def test_pages_are_cut_of_all_rows_and_totals_are_of_all() -> None:
    whole = sheet(*(row(f"c{number}", FAILED) for number in range(5)))
    pages = [whole.page(Step.DAY, number, 2) for number in (1, 2, 3, 4)]
    assert [len(each.rows) for each in pages] == [2, 2, 1, 0]
    assert {each.row_count for each in pages} == {5}
    assert {each.page_count for each in pages} == {3}
    assert {each.total[Cell.FAILED] for each in pages} == {5}


def test_rows_are_chosen_by_a_part_of_their_name_and_by_what_they_show() -> None:
    whole = sheet(row("acme", GOOD), row("globex", FAILED), row("initech", KEPT, query="acme_daily"))
    assert [each.customer_id for each in whole.only("acme").rows] == ["initech", "acme"]
    assert [each.customer_id for each in whole.only(cells=[Cell.FAILED]).rows] == ["globex"]
    assert whole.only("nobody").page().total == {}


def test_json_tells_of_each_character_that_it_has() -> None:
    told = sheet(row("a", GOOD, KEPT, None)).page().to_dict()
    assert told["rows"] == [
        {
            "source": "demo", "customer_id": "a", "query_name": "orders",
            "cells": GOOD.code + KEPT.code + " ", "counts": {"last_attempt_failed": 1, "materialized": 1},
        }
    ]  # fmt: skip
    assert told["codes"] == {
        KEPT.code: {
            "cell": "last_attempt_failed", "letter": "F", "availability": "published",
            "last_attempt": "FAILED", "words": words_of(KEPT),
        },
        GOOD.code: {
            "cell": "materialized", "letter": "■", "availability": "published",
            "last_attempt": "SUCCEEDED", "words": words_of(GOOD),
        },
    }  # fmt: skip


def test_a_terminal_shows_the_letters_of_cells() -> None:
    assert [each.letters for each in sheet(row("a", GOOD, FAILED, None)).page().as_grid().rows] == ["■x "]


def test_of_nothing_there_is_an_empty_page() -> None:
    found = Sheet(NOW, None, ()).page()
    assert (found.columns, found.rows, found.total, found.page_count) == ((), (), {}, 1)
