"""`sealbook mirror`, as a user types it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import sealbook
from sealbook.book import Book
from tests.support.cli import Ran, run
from tests.support.published import QUERY, key, publish, write_book


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    """Two partitions, and a mirror in each format."""
    mirrors = {
        "lake": {"format": "delta", "location": "warehouse"},
        "ice": {"format": "iceberg", "location": "ice", "queries": [QUERY]},
    }
    file = write_book(tmp_path) / "sealbook.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"mirrors": mirrors}))
    with sealbook.open(tmp_path) as opened:
        publish(opened.ledger, opened.settings.warehouse, [key(), key(1)], 1, version="2", rows=1)
        yield opened


def ask(book: Book, *arguments: str) -> Ran:
    return run("mirror", *arguments, cwd=book.settings.root)


def test_mirrors_are_run_and_listed(book: Book) -> None:
    first = ask(book, "run")
    assert first.code == 0, first.err
    lines = [line.split() for line in first.out.splitlines()]
    assert lines[0][:3] == ["mirror", "query", "commit"]
    assert [line[:2] for line in lines[1:]] == [
        ["ice", f"demo/{QUERY}"],
        ["lake", f"demo/{QUERY}"],
        ["lake", "demo/clicks"],
    ]
    assert f"lake demo/{QUERY} was made anew: it is new." in first.said
    publish(book.ledger, book.settings.warehouse, [key()], 2, version="2", rows=1)
    listed = ask(book, "list", "--format", "json").json
    assert [each["changes"] for each in listed] == [1, 1, 0]
    [done] = ask(book, "run", "ice", "--format", "json").json
    assert (done["partitions"], done["added"], done["removed"], done["rebuilt"]) == (1, 1, 1, None)
    assert "as it was" in ask(book, "run", "ice").out
    again = ask(book, "run", "lake", "--rebuild")
    assert "was made anew: it was asked for" in again.said
    assert ask(book, "run", "--check").code == 0
    listing = ask(book, "list")
    assert "not mirrored" in listing.out
    consumers = run("consumers", "--format", "json", cwd=book.settings.root).json
    held = [each["name"] for each in consumers if each["holds"]]
    assert held == ["mirror.ice", "mirror.lake", "mirror.lake"]


def test_a_query_that_fails_keeps_the_others_not_from_it(book: Book) -> None:
    ask(book, "run")
    publish(book.ledger, book.settings.warehouse, [key(), key(0, 0, "clicks")], 3, version="1", rows=1)
    for part in Path(book.settings.warehouse).rglob(f"{QUERY}/**/run_id=*3/part-*.parquet"):
        part.unlink()
    done = ask(book, "run", "lake", "--format", "json")
    assert done.code == 3
    assert [each["failed"] is None for each in done.json] == [False, True]
    assert "failed: the artifact" in done.said
    # Iceberg refers to the files of the older version as they are, and so does not look at them.
    assert ask(book, "run", "ice").code == 0


def test_what_is_not_configured_is_refused(book: Book, tmp_path: Path) -> None:
    unknown = ask(book, "run", "none")
    assert unknown.code == 2
    assert "no mirror none is configured" in unknown.said
    (tmp_path / "other").mkdir()
    none = run("mirror", "run", cwd=write_book(tmp_path / "other"))
    assert (none.code, "no mirror is configured" in none.said) == (2, True)
    assert "No mirror is configured" in run("mirror", "list", cwd=tmp_path / "other").said
