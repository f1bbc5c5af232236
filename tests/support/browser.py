"""A real Chromium on a console that answers in this process. Whatever goes wrong in a page fails the test."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, sync_playwright

import sealbook
from sealbook.book import Book
from sealbook.console.access import guard_of
from sealbook.console.app import create_app
from sealbook.console.console import Console
from sealbook.console.security.local import LocalToken
from sealbook.console.security.people import Person, Role
from sealbook.console.serving import bound_socket, make_server

CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_SECONDS = 20
WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 400, "height": 800}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Chromium, started once."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found, "no Chromium: scripts/ensure-chromium says how to get one"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM)
        yield browser
        browser.close()


@contextmanager
def served(
    folder: Path, role: Role = Role.OPERATOR, *, read_only: bool = False
) -> Iterator[tuple[str, Console]]:
    """Answer for the book of a folder; yield the address with the token of its owner, and the console."""
    with ExitStack() as stack:
        book = stack.enter_context(sealbook.open(folder, read_only=True))
        settings = book.settings
        bound = stack.enter_context(bound_socket("127.0.0.1", 0))
        port = bound.getsockname()[1]
        local = LocalToken(Person("ann", role), port)
        console = Console(book, None if read_only else lambda: Book(settings))
        guard = guard_of("127.0.0.1", port, settings.console, (local,))
        is_ready = threading.Event()
        server = make_server(create_app(console, guard), is_ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            assert is_ready.wait(_SECONDS), "the console does not answer"
            yield f"http://127.0.0.1:{port}/?token={local.token}", console
        finally:
            server.should_exit = True
            thread.join(_SECONDS)
        assert not thread.is_alive(), "the console does not end"


@dataclass
class Watched:
    """A page, and what went wrong in it so far; statuses that are `expected` are no fault."""

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)
    expected: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("console", self._said)
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)

    def goto(self, path: str) -> None:
        """Open a page of the console."""
        self.page.goto(f"{self.base}{path}")

    def check_accessibility(self) -> None:
        """Hold what is shown against all rules: names, roles, contrast, order of focus."""
        found = Axe().run(self.page).response["violations"]
        said = [
            f"{each['id']}: {each['help']}: {[node['html'] for node in each['nodes']][:3]}" for each in found
        ]
        assert not said, f"{self.page.url}: {said}"

    def _said(self, message: ConsoleMessage) -> None:
        # A browser says of each refused request, too, that it was: that is told by its status.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.faults.append(f"console: {message.text}")

    def _failed(self, request: Request) -> None:
        # A page that is left takes its stream and what it was asking for with it.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"request: {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.faults.append(f"{response.status}: {response.url}")


Open = Callable[..., Watched]


@pytest.fixture
def open_console(chromium: Browser) -> Iterator[Open]:
    """Open consoles on books, as ann: `open_console(folder, viewport=WIDE, color_scheme="dark", …)`."""
    with ExitStack() as stack:
        opened: list[Watched] = []

        def open_(
            folder: Path, role: Role = Role.OPERATOR, *, read_only: bool = False, **context: Any
        ) -> Watched:
            address, _ = stack.enter_context(served(folder, role, read_only=read_only))
            made = chromium.new_context(**{"viewport": WIDE, **context})
            stack.callback(made.close)
            made.set_default_timeout(_SECONDS * 1000)
            watched = Watched(made.new_page(), address.partition("/?")[0])
            opened.append(watched)
            watched.page.goto(address.replace("/?", "/runs?"))
            return watched

        yield open_
        faults = [fault for each in opened for fault in each.faults]
    assert not faults
