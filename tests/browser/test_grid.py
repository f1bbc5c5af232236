"""The front door in Chromium: the grid by pointer, by keys, without scripts; every filter in the address."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, Position, expect

import sealbook
from sealbook.model.partition_events import PartitionPublished
from tests.support.browser import NARROW, Open, Watched
from tests.support.grids import CUSTOMERS, DAYS, QUERY, key, write_grid_book


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("book")
    write_grid_book(found)
    return found


@pytest.fixture
def console(open_console: Open, folder: Path) -> Watched:
    opened = open_console(folder)
    opened.expected.add(404)  # the pages of partitions are another's to prove
    return opened


def drawn(console: Watched, path: str = "/") -> Page:
    """Open the grid, and wait until it is drawn."""
    console.goto(path)
    expect(console.page.locator("#grid[data-state=drawn]")).to_be_attached()
    return console.page


def focused(page: Page) -> str | None:
    """Return the address of the cell that has the focus."""
    return page.locator(":focus").get_attribute("href")


def path_of(customer: int, day: str) -> str:
    return f"/partitions/demo/{CUSTOMERS[customer]}/{QUERY}/{day}"


def opens(page: Page, path: str) -> None:
    """Wait until a partition is shown in a drawer over the grid."""
    page.wait_for_url(f"**open={path.removeprefix('/partitions/')}")
    expect(page.get_by_role("dialog", name="Partition")).to_be_visible()


def test_the_grid_is_drawn_worst_first_with_what_each_cell_says(console: Watched) -> None:
    page = drawn(console)
    table = page.locator(".in-view table")
    assert table.locator("tbody tr").first.locator("th").inner_text() == CUSTOMERS[3]
    cells = table.locator("tbody tr").first.locator("td a")
    assert cells.last.inner_text() == "withdrawn: consumers get nothing any more, the last attempt failed"
    assert cells.nth(-2).inner_text() == (
        "last attempt failed: consumers get the newest run, the last attempt failed"
    )
    assert "60 rows, the worst first; 2026-01-01 to 2026-02-09" in page.locator("#grid-summary").inner_text()
    assert "withdrawn 1" in page.locator(".legend").inner_text()
    console.check_accessibility()


def test_the_canvas_shows_cells_in_their_colours(console: Watched) -> None:
    page = drawn(console)
    shown = page.evaluate(
        """() => {
          const canvas = document.querySelector("#grid canvas");
          const context = canvas.getContext("2d");
          const {data} = context.getImageData(0, 0, canvas.width, canvas.height);
          const found = new Set();
          for (let at = 0; at < data.length; at += 4) {
            const colour = [...data.slice(at, at + 3)];
            found.add("#" + colour.map((each) => each.toString(16).padStart(2, "0")).join(""));
          }
          const style = getComputedStyle(document.documentElement);
          return ["withdrawn", "failed", "last_attempt_failed", "missing", "materialized", "stale"].filter(
            (cell) => found.has(style.getPropertyValue(`--cell-${cell}`).trim()));
        }"""
    )
    assert shown == ["withdrawn", "failed", "last_attempt_failed", "missing", "materialized"]


def test_keys_go_from_cell_to_cell_and_enter_opens_one(console: Watched) -> None:
    page = drawn(console)
    page.locator(".in-view a[tabindex='0']").focus()
    page.keyboard.press("End")
    assert focused(page) == path_of(3, "2026-02-09")
    page.keyboard.press("ArrowLeft")
    assert focused(page) == path_of(3, "2026-02-08")
    page.keyboard.press("ArrowDown")
    assert focused(page) == path_of(5, "2026-02-08")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert focused(page) == path_of(3, "2026-02-08"), "there is nothing above"
    page.keyboard.press("Home")
    assert focused(page) == path_of(3, "2026-01-01")
    for _ in range(len(CUSTOMERS)):
        page.keyboard.press("ArrowDown")
    assert (focused(page) or "").endswith(f"/{QUERY}/2026-01-01"), (
        "rows come into view as the focus goes down"
    )
    assert page.evaluate("document.querySelector('.pane').scrollTop") > 0
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Shift+ArrowUp")
    assert focused(page) == path_of(3, "2026-01-01")
    page.keyboard.press("Enter")
    opens(page, path_of(3, "2026-01-01"))


def test_a_click_opens_the_partition_under_the_pointer(console: Watched) -> None:
    page = drawn(console)
    assert page.evaluate("document.querySelector('.pane').scrollLeft") == 0, "forty days fit"
    box = page.locator("#grid .extent").bounding_box()
    assert box is not None
    last: Position = {"x": box["width"] - 10, "y": 52 + 9}
    page.locator("#grid canvas").hover(position=last)
    tip = page.locator(".tip")
    assert f"demo/{CUSTOMERS[3]}/{QUERY}/2026-02-09" in tip.inner_text()
    assert "withdrawn: consumers get nothing any more" in tip.inner_text()
    page.locator("#grid canvas").click(position=last)
    opens(page, path_of(3, "2026-02-09"))


def test_zoom_to_weeks_and_back_is_in_the_address(console: Watched) -> None:
    page = drawn(console)
    page.keyboard.press("-")
    page.wait_for_url("**/?step=week")
    expect(page.locator(".in-view thead th").nth(3)).to_have_text("2026-01-05 to 2026-01-11")
    assert page.locator("#step").input_value() == "week"
    expect(page.locator(".in-view tbody tr").first.locator("td a").last).to_contain_text("withdrawn")
    page.locator("#step").select_option("month")
    page.wait_for_url("**/?step=month")
    expect(page.locator(".in-view thead th")).to_have_count(4)
    page.go_back()
    expect(page.locator(".in-view thead th")).to_have_count(2 + 7)
    page.locator(".in-view a[tabindex='0']").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**since=2026-01-01&until=2026-01-04")
    expect(page.locator(".in-view thead th")).to_have_count(2 + 4)


def test_filters_are_in_the_address(console: Watched) -> None:
    page = drawn(console)
    page.keyboard.press("/")
    page.keyboard.type(CUSTOMERS[5])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**match={CUSTOMERS[5]}**")
    expect(page.locator("#grid[data-state=drawn]")).to_be_attached()
    assert page.locator(".in-view tbody tr").count() == 1
    assert page.locator("#match").input_value() == CUSTOMERS[5]
    page = drawn(console, "/?cell=missing&since=2026-02-01")
    assert page.locator(".in-view tbody th").all_inner_texts() == [CUSTOMERS[9]]
    assert page.locator("#cell").input_value() == "missing"
    assert page.locator(".in-view thead th").count() == 2 + 9


def test_help_opens_and_closes(console: Watched) -> None:
    page = drawn(console)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    console.check_accessibility()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


@pytest.mark.parametrize("look", [{"color_scheme": "dark"}, {"viewport": NARROW}])
def test_dark_and_narrow_have_no_fault(open_console: Open, folder: Path, look: dict[str, object]) -> None:
    console = open_console(folder, **look)
    page = drawn(console)
    console.check_accessibility()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture
def without_scripts(open_console: Open, folder: Path) -> Watched:
    return open_console(folder, java_script_enabled=False)


def test_without_scripts_there_are_tables_by_the_page(without_scripts: Watched) -> None:
    page = without_scripts.page
    without_scripts.goto("/")
    table = page.locator(".grid-table")
    assert table.locator("tbody tr").count() == 50
    assert table.locator("tbody tr").first.locator("td.cell").count() == 31
    assert table.locator("tbody tr").first.locator("td.cell a").last.get_attribute("href") == path_of(
        3, "2026-02-09"
    )
    page.get_by_role("link", name="More rows").click()
    assert table.locator("tbody tr").count() == 10
    page.get_by_role("link", name="Rows before").click()
    page.get_by_role("link", name="Earlier").click()
    assert page.locator("th.day").all_inner_texts()[-1] == "2026-01-09"
    assert page.locator("th.day").count() == DAYS - 31
    page.locator("#step").select_option("month")
    page.get_by_role("button", name="Show").click()
    assert page.locator("th.day").count() == 1


def test_what_changes_is_drawn_again_without_asking_for_the_rest(console: Watched, folder: Path) -> None:
    page = drawn(console)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    first = page.locator(".in-view tbody tr").nth(1)
    assert first.locator("th").inner_text() == CUSTOMERS[5]
    expect(first.locator("td a").last).to_have_text("failed: consumers get nothing, the last attempt failed")
    with sealbook.open(folder) as book:
        run_id = book.ledger.open_run()
        fact = PartitionPublished(
            key=key(5, DAYS - 1),
            run_id=run_id,
            attempt="1",
            schema_version="1",
            record_count=1,
            bytes=1,
            digest="0" * 64,
        )
        book.ledger.run_store.append_events([fact.to_event()])
        book.catch_up()
    expect(first.locator("td a").last).not_to_contain_text("failed: consumers get nothing")
    assert "failed 1" in page.locator(".legend [data-cell=failed]").inner_text()
    fetched = [url for url in asked if "index.json" in url]
    assert fetched
    assert all(f"customer={CUSTOMERS[5]}" in url for url in fetched)
