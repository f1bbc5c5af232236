"""Every page of the console in Chromium: no fault in it, nothing that keeps anybody from reading it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.browser import Open
from tests.support.demo_books import write_demo_book

PAGES = ["/runs"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_fault(open_console: Open, tmp_path: Path, path: str) -> None:
    write_demo_book(tmp_path)
    import sealbook

    with sealbook.open(tmp_path) as book:
        book.catch_up()
    console = open_console(tmp_path)
    console.goto(path)
    console.check_accessibility()
