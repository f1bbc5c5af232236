"""`sealbook changes`, `sealbook consumers` and `sealbook explain --consumers`, as a user types them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import sealbook
from sealbook.book import Book
from tests.support.cli import SEALBOOK, Ran, run
from tests.support.ledger import reject, run_id
from tests.support.published import QUERY, key, publish, write_book


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    """Two partitions of run 1, of which one was replaced by run 2."""
    with sealbook.open(write_book(tmp_path)) as opened:
        publish(opened.ledger, opened.settings.warehouse, [key(), key(1)], 1, rows=1)
        publish(opened.ledger, opened.settings.warehouse, [key()], 2, rows=1)
        yield opened


def ask(book: Book, *arguments: str) -> Ran:
    return run(*arguments, cwd=book.settings.root)


def test_what_changed_for_people_and_for_programs(book: Book) -> None:
    table = ask(book, "changes", QUERY)
    assert table.code == 0, table.err
    lines = [line.split() for line in table.out.splitlines()]
    assert lines[0] == ["at", "(UTC)", "partition", "change", "from", "run", "to", "run"]
    assert [line[2:] for line in lines[1:]] == [
        [str(key()), "published", run_id(1)],
        [str(key(1)), "published", run_id(1)],
        [str(key()), "replaced", run_id(1), run_id(2)],
    ]
    assert "3 changes. To go on: --after 2" in table.said
    found = ask(book, "changes", QUERY, "--after", "1", "--format", "json").json
    assert (found["token"], found["more"], len(found["items"])) == ("2", False, 1)
    assert found["items"][0] | {"at": None} == {
        "source": "demo",
        "customer_id": "c0",
        "query_name": QUERY,
        "logical_date": "2026-01-01",
        "kind": "replaced",
        "from_run_id": run_id(1),
        "to_run_id": run_id(2),
        "version": 2,
        "at": None,
    }
    first = ask(book, "changes", QUERY, "--limit", "1", "--format", "json").json
    assert (first["token"], first["more"], len(first["items"])) == ("1", True, 2)
    assert ask(book, "changes", QUERY, "--customer", "c1", "--format", "json").json["token"] == "2"


def test_a_consumer_goes_on_from_what_it_said_is_done(book: Book) -> None:
    mine = ("changes", QUERY, "--as", "reports")
    everything = ask(book, *mine, "--format", "json").json
    assert ask(book, *mine, "--format", "json").json == everything, "nothing was advanced"
    assert ask(book, "consumers").said.strip().startswith("There is no consumer yet")
    advanced = ask(book, *mine, "--advance", "1")
    assert (advanced.code, advanced.out) == (0, "")
    assert len(ask(book, *mine, "--format", "json").json["items"]) == 1
    book.ledger.judge([reject(key(1), 1, again="a")])
    [found] = ask(book, "consumers", "--format", "json").json
    assert (found["name"], found["query_name"], found["token"]) == ("reports", QUERY, "1")
    assert (found["changes"], found["withdrawn"], found["more"]) == (2, 1, False)
    assert ask(book, "consumers").out.split()[-4:-2] == ["2", "1"]
    assert ask(book, "consumers", "drop", "reports").code == 0
    assert ask(book, "consumers", "--format", "json").json == []


def test_who_has_a_run_that_was_demoted_since(book: Book) -> None:
    assert ask(book, "warehouse", "cut", "create", "month_end").code == 0
    assert ask(book, "changes", QUERY, "--as", "reports", "--advance", "month_end").code == 0
    book.ledger.judge([reject(key(), 2, again="a")])
    ran = ask(book, "explain", "--consumers", str(key()))
    assert [line.split() for line in ran.out.splitlines()][1:] == [
        ["cut", "month_end", run_id(2), "rejected"],
        ["consumer", "reports", run_id(2), "rejected"],
    ]
    assert "2 holders have a run of it" in ran.said
    found = ask(book, "explain", str(key(1)), "--consumers", "--format", "json").json
    assert [(each["name"], each["withdrawn"]) for each in found] == [("month_end", None), ("reports", None)]


def test_what_is_wrong_is_said(book: Book) -> None:
    for wrong, said in (
        (("--after", "99"), "has not come to"),
        (("--after", "7.x"), "token"),
        (("--advance", "1"), "no consumer is named"),
        (("--as", "a", "--after", "1"), "a token and a consumer"),
        (("--as", "Not One"), "consumer"),
    ):
        ran = ask(book, "changes", QUERY, *wrong)
        assert ran.code == 2, ran.err
        assert said in ran.said
    several = ask(book, "changes", "--as", "reports")
    assert several.code == 2
    assert "one query" in several.said
    assert ask(book, "changes", QUERY, "--after", "nowhere").code == 1
    assert ask(book, "consumers", "drop", "nobody").code == 1


def test_whoever_follows_is_told_as_it_happens(book: Book) -> None:
    command = [str(SEALBOOK), "changes", QUERY, "--follow", "--format", "json"]
    with subprocess.Popen(command, cwd=book.settings.root, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert len(json.loads(following.stdout.readline())["items"]) == 3
        book.ledger.judge([reject(key(1), 1, again="a")])
        [item] = json.loads(following.stdout.readline())["items"]
        assert (item["kind"], item["from_run_id"]) == ("withdrawn", run_id(1))
        following.terminate()
        assert following.wait() == 143
