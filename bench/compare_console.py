"""The console over a million partitions: against the bare statements that its cells need, and in Chromium."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

from playwright.sync_api import sync_playwright
from sqlalchemy import event

from bench.bare import Bare
from bench.console_load import DAYS, LAST, write_book
from bench.harness import Result, duration, medians, seconds
from bench.status_load import CUSTOMERS, FIRST, QUERIES, customers, fill
from sealbook.console.answers import Answers
from sealbook.console.console import Console
from sealbook.ledger import migrate, open_ledger
from sealbook.ledger.status.tables import day_number
from sealbook.model.selection import Selection
from sealbook.views.encoding import encode
from sealbook.views.sheet import sheet_of
from tests.support.browser import CHROMIUM, served
from tests.support.ledger import postgresql_server

ROUNDS = 5
PAGES = 50
QUERY = QUERIES[3]

_SELECT = (
    "SELECT series_id, day, availability, materialized_at, attempt_at, attempt_outcome, validator_id"
    " FROM partition_status WHERE series_id IN ({ids}) AND day BETWEEN {first} AND {last}"
)
_DRAWN = "performance.getEntriesByName('sealbook-grid-drawn')[0].startTime"


def run() -> list[Result]:
    """Measure on SQLite and PostgreSQL."""
    with tempfile.TemporaryDirectory() as name, postgresql_server(Path(name) / "pg") as server:
        folder = Path(name)
        return [
            *_on("SQLite", f"sqlite:///{folder}/status.db", folder / "sqlite"),
            *_on("PostgreSQL", server.create_database(), folder / "postgresql"),
        ]


def _on(name: str, url: str, folder: Path) -> Iterator[Result]:
    migrate(url)
    with open_ledger(url) as ledger, Bare(url) as bare:
        fill(ledger, DAYS)
        bare.tidy()
        write_book(folder, url)
        with served(folder) as (address, console):
            yield _grid(name, console, bare)
            yield _drawn(name, address)
            yield _partition(name, address)
            yield _many(name, address, console)


def _grid(name: str, console: Console, bare: Bare) -> Result:
    """Answer as if nobody had asked before: nothing is kept from one round to the next."""
    ids = ", ".join(str(place * len(QUERIES) + 4) for place in range(CUSTOMERS))
    select = _SELECT.format(ids=ids, first=day_number(FIRST), last=day_number(LAST))
    chosen = Selection(queries=QUERY)

    def answer() -> bytes:
        book = console.book
        page = sheet_of(book.ledger, book.expectations(), chosen).page()
        return encode(page.to_dict())

    ours, peer = seconds(ROUNDS, answer, lambda: bare.ask(select))
    what = f"a grid of {CUSTOMERS:,} customers and {DAYS} days, {name}, against a bare select"
    return duration(what, ours, peer, at_most=3, detail=f"{ours * 1000:.0f} ms of {peer * 1000:.0f} ms")


def _drawn(name: str, address: str) -> Result:
    """Open the page in Chromium, once its answer is there: from the first request to the last stroke."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address.replace("/?", "/runs?"))
        taken = []
        for _ in range(ROUNDS):
            page.goto(f"{address.partition('?')[0]}?query={QUERY}")
            page.wait_for_selector("#grid[data-state=drawn]")
            taken.append(page.evaluate(_DRAWN) / 1000)
        browser.close()
    best = min(taken)
    detail = f"first {taken[0]:.2f} s, then {best:.2f} s"
    what = f"open the page of that grid and draw it in Chromium, {name}"
    return Result(what, best, "s", "< 1", best < 1, detail)


def _partition(name: str, address: str) -> Result:
    """Ask for another partition each time: nothing of it is kept."""
    opener, base = _let_in(address)
    asked = iter(customers())
    [taken] = medians(ROUNDS, lambda: _ask(opener, f"{base}/partitions/demo/{next(asked)}/{QUERY}/{LAST}"))
    return Result(f"a partition's page, {name}", taken * 1000, "ms", "< 100", taken < 0.1)


def _many(name: str, address: str, console: Console) -> Result:
    """Let pages ask again after the ledger has moved, one of them and then many at once."""
    opener, base = _let_in(address)
    ask = partial(_ask, opener, f"{base}/index.json?query={QUERY}&rows=1000")
    counts = []
    for pages in (1, PAGES):
        console.acted()
        console.answers = Answers()
        with _counted(console) as statements, ThreadPoolExecutor(pages) as pool:
            list(pool.map(lambda _: ask(), range(pages)))
        counts.append(len(statements))
    one, many = counts
    detail = f"{many} statements of {one}"
    return duration(f"{PAGES} open pages, {name}, against one", many, one, at_most=2, detail=detail)


def _ask(opener: OpenerDirector, address: str) -> bytes:
    found: bytes = opener.open(address).read()
    return found


def _let_in(address: str) -> tuple[OpenerDirector, str]:
    """Swap the token of an address for a cookie."""
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    opener.open(address.replace("/?", "/runs?")).read()
    return opener, address.partition("/?")[0]


@contextmanager
def _counted(console: Console) -> Iterator[list[str]]:
    """Yield the statements that the ledger is asked meanwhile."""
    found: list[str] = []
    engine = console.book.ledger._database.engine  # noqa: SLF001 - nobody else counts them

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        found.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield found
    event.remove(engine, "before_cursor_execute", note)
