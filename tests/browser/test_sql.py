"""The page for SQL in Chromium: asked by keys, answered in a table, what is wrong beside the question."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import sealbook
from tests.support.browser import Open
from tests.support.published import QUERY, key, publish, write_book


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = write_book(tmp_path_factory.mktemp("book"))
    with sealbook.open(found) as book:
        publish(book.ledger, found / "warehouse", [key(0, 0), key(1, 0)], version="2", rows=2)
    return found


def test_a_question_is_asked_and_answered(open_console: Open, folder: Path) -> None:
    console = open_console(folder)
    page = console.page
    console.goto("/sql")
    console.check_accessibility()
    page.keyboard.press("/")
    page.keyboard.type(f"select customer_id, count(*) as rows from {QUERY} group by all order by all")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/sql?sql=**")
    expect(page.locator("table.rows tbody tr")).to_have_count(2)
    assert page.locator("table.rows tbody tr").first.inner_text().split() == ["c0", "2"]
    console.check_accessibility()
    page.locator("#sql").fill("select * from read_text('/etc/passwd')")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_have_text("read_text cannot be asked here")
    assert page.locator("#sql").input_value() == "select * from read_text('/etc/passwd')"
    console.check_accessibility()
