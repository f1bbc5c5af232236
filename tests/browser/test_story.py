"""The demo's story, clicked through: a failed cell, its lines, a fix and a retry; a rollback; a backfill."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from playwright.sync_api import Page, expect

import sealbook
from sealbook.book import Book
from sealbook.extract.sources.demo import demo_configuration
from sealbook.extract.sources.demo_rows import demo_lines
from sealbook.model import PartitionKey, Status, Verdict
from sealbook.model.plans import PlanState
from sealbook.model.selection import Selection
from tests.support.browser import Open, Watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

CUSTOMERS = ("1001", "1003")
DAYS = [date(2026, 1, day) for day in (1, 2, 3)]
KEYS = [PartitionKey("demo", customer, "campaign_daily", day) for customer in CUSTOMERS for day in DAYS]
ROWS = 20


def most(key: PartitionKey) -> int:
    """Return the largest number of impressions in a partition."""
    lines = demo_lines(key, seed=0, rows=ROWS, restatement=0)
    return max(int(msgspec.json.decode(line)["metrics_impressions"]) for line in lines)


FIRST = [key for key in KEYS if key.logical_date != DAYS[-1]]
"""What is fetched at first; the last day is left for a backfill."""
FAILED = max(FIRST, key=most)
GOOD, *_ = (key for key in FIRST if key != FAILED)
LIMIT = max(most(key) for key in KEYS if key != FAILED)
RULE = {"name": "impressions_plausible", "expression": f"metrics_impressions <= {LIMIT}"}


def write_files(folder: Path, *rules: dict[str, Any], restatement: int = 0) -> None:
    """Write the files of the book: its contract has further rules, and its source may have restated days."""
    source = {
        "queries": "demo.yaml",
        "customers": list(CUSTOMERS),
        "first_day": str(DAYS[0]),
        "last_day": str(DAYS[-1]),
        "options": {"rows": ROWS, "restatement": restatement},
    }
    settings = {
        "ledger": "sqlite:///book.db",
        "sources": {"demo": source},
        "spark": {"master": "local[2]"},
    }
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    catalogue = yaml.safe_load(demo_configuration())
    query = catalogue["queries"]["campaign_daily"]
    query["contracts"]["1"]["rules"] += rules
    text = yaml.safe_dump({**catalogue, "queries": {"campaign_daily": query}})
    (folder / "demo.yaml").write_text(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A book of two customers and three days, two of which are fetched; a rule is too strict for one."""
    del spark
    found = tmp_path_factory.mktemp("story")
    write_files(found, RULE)
    with sealbook.open(found) as book:
        book.run(Selection(keys=FIRST))
        book.catch_up()
    return found


@pytest.fixture
def book(folder: Path) -> Iterator[Book]:
    with sealbook.open(folder) as opened:
        yield opened


def carry_out(console: Watched, button: str, *, reason: str) -> None:
    """Ask for an action from the page of a partition, look at its plan, and carry it out."""
    page = console.page
    page.get_by_role("link", name=button).click()
    page.get_by_label("Why").fill(reason)
    console.check_accessibility()
    page.get_by_role("button", name="Show the plan").click()
    expect(page.locator(".figures dd").first).to_have_text("1")
    console.check_accessibility()
    page.get_by_role("button", name="Carry out").click()
    expect(page.get_by_role("status").filter(has_text="partition")).to_be_visible()


def standing(page: Page) -> Any:
    return expect(page.locator(".standing .badge"))


def test_the_story(open_console: Open, folder: Path, book: Book) -> None:
    assert book.ledger.state(FAILED).status is Status.FAILED
    console = open_console(folder)
    page = console.page

    # A failed cell opens a drawer, with the lines that failed.
    console.goto("/")
    expect(page.locator("#grid[data-state=drawn]")).to_be_attached()
    cell = page.locator(f"a[href='/partitions/{FAILED}']").last
    cell.focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="Partition")
    expect(drawer.get_by_text("not readable")).to_be_visible()
    expect(drawer.locator("dl.lines code").first).to_contain_text('"metrics_impressions":')
    assert f"open={FAILED}" in page.url
    console.check_accessibility()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page).not_to_have_url(re.compile("open="))  # a dialog tells that it is closed a moment later
    assert page.evaluate("document.activeElement.getAttribute('href')") == f"/partitions/{FAILED}"
    page.go_back()  # the address of the drawer opens it again
    expect(drawer.get_by_text("not readable")).to_be_visible()
    drawer.get_by_role("link", name="Open as a page").click()
    standing(page).to_have_text("not readable")

    # A plan that is not what it was is refused, with the difference.
    page.get_by_role("link", name="Judge it again").click()
    page.get_by_label("Why").fill("the rule is too strict")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_role("button", name="Carry out")).to_be_visible()
    book.ledger.judge([reject_again(book, FAILED)])
    console.expected.add(409)
    page.get_by_role("button", name="Carry out").click()
    expect(page.get_by_role("alert")).to_contain_text(str(FAILED))
    console.check_accessibility()
    console.expected.clear()
    assert book.ledger.state(FAILED).status is Status.FAILED

    # The cause is mended, and the run judged again; a good day is fetched anew; a missing one is backfilled.
    write_files(folder, restatement=3)
    console.goto(f"/partitions/{FAILED}")
    carry_out(console, "Judge it again", reason="the rule was too strict")
    console.goto(f"/partitions/{GOOD}")
    carry_out(console, "Fetch another run", reason="restated")
    page.goto(f"{console.base}/actions/backfill?query=campaign_daily&since={DAYS[-1]}&until={DAYS[-1]}")
    page.get_by_label("Why").fill("new client")
    page.get_by_label("Name").fill("third_day")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Carry out: 2 partitions").click()
    expect(page.get_by_role("status").filter(has_text="2 partitions are to be fetched")).to_be_visible()
    backfill = page.url

    # It turns good before our eyes: the page is not loaded again.
    console.goto(f"/partitions/{FAILED}")
    standing(page).to_have_text("not readable")
    page.evaluate("window.isSamePage = true")
    with sealbook.open(folder) as working:
        working.loop().tick()
        working.catch_up()
    standing(page).to_have_text("readable")
    assert page.evaluate("window.isSamePage") is True
    console.check_accessibility()
    page.goto(backfill)
    expect(page.locator("h1 .badge")).to_have_text("done")
    assert book.operator.find_backfill("third_day").state is PlanState.DONE

    # What was published anew turns out bad: it is withdrawn at once, and rolled back.
    console.goto(f"/partitions/{GOOD}")
    standing(page).to_have_text("readable")
    before, after = (str(run) for run in book.raw.runs(GOOD))
    page.evaluate("window.isSamePage = true")
    book.ledger.judge([reject_again(book, GOOD)])
    book.catch_up()
    standing(page).to_have_text("not readable")
    assert page.evaluate("window.isSamePage") is True
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Two runs of")).to_be_visible()
    expect(page.locator("ins").first).to_be_visible()  # conversions came in meanwhile
    console.check_accessibility()
    page.go_back()
    page.get_by_role("link", name=f"Roll back to run {before}").click()
    page.get_by_label("Why").fill("the reload is bad")
    page.get_by_role("button", name="Show what it would do").click()
    expect(page.get_by_text(f"would go from run {after} to run {before}")).to_be_visible()
    console.check_accessibility()
    page.get_by_role("button", name="Roll back").click()
    expect(page.get_by_role("status").filter(has_text="went from run")).to_be_visible()
    page.get_by_role("link", name="Look at it").click()
    standing(page).to_have_text("readable")
    expect(page.locator("ol.timeline")).to_contain_text("by ann: “the reload is bad”")
    assert book.ledger.state(GOOD).current_run_id == before


def test_without_scripts_everything_can_be_read_and_done(open_console: Open, folder: Path) -> None:
    console = open_console(folder, java_script_enabled=False)
    page = console.page
    console.goto(f"/partitions/{GOOD}")
    expect(page.locator(".timeline li").first).to_be_visible()
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    page.get_by_role("link", name="Fetch another run").click()
    page.get_by_label("Why").fill("to see")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_role("button", name="Carry out")).to_be_visible()


def reject_again(book: Book, key: PartitionKey) -> Verdict:
    """Return a verdict that finds the newest run of a partition bad."""
    run = book.raw.runs(key)[-1]
    return Verdict.reject(
        key, run, error_message="found to be bad", validator_version="v", revalidation_id=f"again {run}"
    )
