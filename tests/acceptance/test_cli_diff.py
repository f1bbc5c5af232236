"""`sealbook diff`, as a user types it: without Spark for few partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sealbook
from sealbook.book import Book
from tests.support.cli import Ran, run
from tests.support.ledger import run_id
from tests.support.published import QUERY, key, publish, write_book


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    """One partition with two runs, one with one."""
    (tmp_path / "raw").mkdir()
    with sealbook.open(write_book(tmp_path)) as opened:
        publish(opened.ledger, opened.settings.warehouse, [key(), key(1)], 1, rows=3)
        publish(opened.ledger, opened.settings.warehouse, [key()], 2, rows=4)
        yield opened


def ask(book: Book, *arguments: str) -> Ran:
    return run("diff", *arguments, cwd=book.settings.root)


def test_the_runs_of_a_partition_for_people(book: Book) -> None:
    ran = ask(book, str(key()), "--limit", "1")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[:4] == [
        str(key()),
        f"before  {run_id(1)}  schema_version 1, 3 rows of its artifact",
        f"after   {run_id(2)}  schema_version 1, 4 rows of its artifact",
        "rows    4 added, 3 removed, 0 changed, 0 unchanged (matched as a whole: no primary key)",
    ]
    assert any(line.split() == ["clicks", "0", "0", "0", "3", "8", "5"] for line in lines)
    assert [line.split()[0] for line in lines[-3:]] == ["row", "removed", "added"]
    assert "5 rows more" in ran.said


def test_runs_are_named_in_order_and_json_has_everything(book: Book) -> None:
    [found] = ask(book, str(key()), run_id(2), run_id(1), "--format", "json").json
    assert (found["before"]["run_id"], found["after"]["run_id"]) == (run_id(2), run_id(1))
    assert found["before"] == {
        "run_id": run_id(2),
        "schema_version": "1",
        "rows": 4,
        "rows_from": "artifact",
        "unreadable_lines": 0,
    }
    assert (found["added"], found["removed"], len(found["sample"])) == (3, 4, 7)
    assert {"name", "changed", "total_before", "total_after"} <= found["columns"][0].keys()


def test_many_partitions_are_a_line_each(book: Book) -> None:
    ran = ask(book, "--query", QUERY)
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == ["partition", str(key())]
    assert "1 partition compared, 0 the same; 1 with nothing to compare." in ran.said


def test_what_cannot_be_compared_says_so(book: Book) -> None:
    alone = ask(book, str(key(1)))
    assert alone.code == 1
    assert "it has one run" in alone.said
    unknown = ask(book, str(key()), run_id(1), run_id(7))
    assert unknown.code == 1
    assert run_id(7) in unknown.said
    nothing = ask(book)
    assert nothing.code == 2
    assert "nothing is chosen" in nothing.said
    for part in Path(book.settings.warehouse).rglob(f"run_id={run_id(2)}/*"):
        part.write_bytes(b"no parquet")
    assert ask(book, str(key())).code == 1
    damaged = ask(book, "--query", QUERY)
    assert damaged.code == 3
    assert "cannot be compared" in damaged.said
