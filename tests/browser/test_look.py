"""Every list of the console in Chromium: no fault in it, nothing that keeps anybody from reading it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import sealbook
from tests.support.browser import NARROW, WIDE, Open
from tests.support.console_books import BAD, GOOD, MARKUP, OTHER, write_lively_book
from tests.support.ledger import accept, run_id

PAGES = (
    "/runs", f"/runs/{run_id(1)}", "/backfills", "/backfills/old", "/lanes", "/leases", "/pauses", "/budget",
    "/cuts", "/contracts", "/contracts/rehearsal?query=campaign_daily", "/audit", "/alerts",
    f"/partitions/{BAD}", f"/partitions/{GOOD}/compare", "/plans/1", "/plans/2",
    "/actions", f"/actions/retry?key={BAD}", "/actions/backfill", "/actions/rollback", "/actions/pause",
    "/login", "/nowhere",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("book")
    write_lively_book(made)
    return made


@pytest.mark.parametrize(("viewport", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide", "narrow"])
def test_every_page_can_be_read_by_everybody(
    open_console: Open, folder: Path, viewport: dict[str, int], scheme: str
) -> None:
    console = open_console(folder, viewport=viewport, color_scheme=scheme)
    console.expected = {404}
    for path in PAGES:
        console.goto(path)
        console.check_accessibility()
        wide = console.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide, f"{path} is wider than the window"


def test_no_text_of_the_book_is_run(open_console: Open, folder: Path) -> None:
    console = open_console(folder)
    console.page.on("dialog", lambda dialog: console.faults.append(f"dialog: {dialog.message}"))
    for path in PAGES[:-2]:
        console.goto(path)
    console.goto("/audit")
    assert MARKUP in console.page.inner_text("main")


def test_a_page_without_scripts_says_the_same(open_console: Open, folder: Path) -> None:
    console = open_console(folder, java_script_enabled=False)
    console.goto("/audit?action=pause")
    assert console.page.locator("tbody tr").count() == 1
    console.page.select_option("#filter-action", "mark")
    console.page.click("form.filters button")
    assert "action=mark" in console.page.url
    assert "mark" in console.page.inner_text("tbody")


def test_a_page_is_renewed_without_reloading_when_the_book_moves(open_console: Open, tmp_path: Path) -> None:
    write_lively_book(tmp_path)
    console = open_console(tmp_path)
    console.goto("/runs")
    console.page.evaluate("window.isTheSame = true")
    rows = console.page.locator("tbody tr")
    before = rows.count()
    with sealbook.open(tmp_path) as book:
        book.ledger.judge([accept(OTHER, 7)])
        book.catch_up()
    expect(rows).to_have_count(before + 1)
    assert console.page.evaluate("window.isTheSame")


def test_keys_lead_to_the_filter_and_renew_the_page(open_console: Open, folder: Path) -> None:
    console = open_console(folder)
    console.goto("/audit")
    console.page.locator("main").focus()
    console.page.keyboard.press("/")
    assert console.page.evaluate("document.activeElement.closest('form.filters') !== null")
    console.page.keyboard.press("Tab")
    console.page.locator("main").focus()
    with console.page.expect_response(lambda answer: "/audit" in answer.url):
        console.page.keyboard.press("r")


def test_who_is_signed_out_is_asked_for_a_token(open_console: Open, folder: Path) -> None:
    console = open_console(folder)
    console.page.context.clear_cookies()
    console.goto("/cuts")
    assert console.page.url.endswith("/login")
    console.expected = {403}
    console.page.fill("#token", "wrong")
    console.page.click("main button")
    assert "no token of this console" in console.page.inner_text("[role=alert]")


def test_a_page_is_printed_without_what_paper_cannot_do(open_console: Open, folder: Path) -> None:
    console = open_console(folder)
    console.goto("/audit")
    console.page.emulate_media(media="print")
    assert not console.page.locator("header nav").is_visible()
    assert not console.page.locator("form.filters button").is_visible()
    assert console.page.locator("tbody tr").first.is_visible()
