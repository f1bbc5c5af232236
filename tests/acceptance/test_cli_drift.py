"""`sealbook drift` as typed: of a book whose days were restated, for people and for programs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import yaml

import sealbook
from sealbook.book import Book
from sealbook.model.auto_due import LEAST_COMPARED
from sealbook.model.selection import Selection
from tests.support.cli import Ran, run
from tests.support.drifts import restate
from tests.support.published import key, write_book

DAY = timedelta(days=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A book of two customers: the days of one change until they are three days old."""
    with sealbook.open(write_book(tmp_path)) as book:
        restate(book.ledger, key(0), [(DAY, 4), (3 * DAY, 2), (7 * DAY, 0)])
        restate(book.ledger, key(1), [(DAY, 0), (3 * DAY, 0), (7 * DAY, 0)])
    return tmp_path


def ask(folder: Path, *arguments: str) -> Ran:
    ran = run("drift", *arguments, cwd=folder)
    assert ran.code == 0, ran.err
    return ran


def test_for_people(folder: Path) -> None:
    ran = ask(folder)
    lines = [line.split(maxsplit=9) for line in ran.out.splitlines()]
    assert lines[0][:3] == ["query", "age", "replaced"]
    assert lines[1:] == [
        ["demo/campaign_daily", "1d", "2", "50.00%", "20", "0", "0", "4", "2.00%", "clicks 2.00%"],
        ["demo/campaign_daily", "3d", "2", "50.00%", "20", "0", "0", "2", "1.00%", "clicks 1.00%"],
        ["demo/campaign_daily", "7d", "2", "100.00%", "20", "0", "0", "0", "0.00%"],
    ]
    assert ran.said.strip() == "6 replacements."


def test_by_customer_for_programs(folder: Path) -> None:
    found = ask(folder, "--by", "customer", "--customer", "c0", "--format", "json").json
    assert [(each["customer_id"], each["age_hours"], each["changed"]) for each in found] == [
        ("c0", 24, 4),
        ("c0", 72, 2),
        ("c0", 168, 0),
    ]
    assert found[0]["columns"] == {"clicks": pytest.approx(0.04)}
    assert (found[0]["share_unchanged"], found[2]["share_unchanged"]) == (0, 1)


def test_the_same_for_programs_in_python(folder: Path) -> None:
    with sealbook.open(folder, read_only=True) as book:
        found = book.drift(Selection(queries="campaign_daily"))
    assert [each.to_dict() for each in found] == ask(folder, "--format", "json").json


def test_a_book_that_replaced_nothing(tmp_path: Path) -> None:
    with sealbook.open(write_book(tmp_path)) as book:
        assert isinstance(book, Book)
        assert book.drift() == []
    assert ask(tmp_path, "--format", "json").json == []
    assert ask(tmp_path).said.strip() == "0 replacements."
    assert run("drift", "--query", "unknown", cwd=tmp_path).code == 2


def test_due_points_that_are_learned_say_why(tmp_path: Path) -> None:
    """Of a query, and of a class of accounts that behaves otherwise; by runs of earlier days."""
    file = write_book(tmp_path) / "sealbook.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["sources"]["demo"] |= {
        "customers": ["c0", {"id": "c1", "class": "quiet"}, "c2"],
        "freshness": {"due": "auto", "within": "14d", "at_most": 3, "tolerance": "0.5%"},
    }
    file.write_text(yaml.safe_dump(settings))
    with sealbook.open(tmp_path) as book:
        assert [each.text for each in book.learned_due().values()] == ["6h, 3d, 7d", "6h, 3d, 7d"]
        for day in range(LEAST_COMPARED):
            restate(book.ledger, key(0, day), [(DAY, 4), (2 * DAY, 0), (3 * DAY, 0), (7 * DAY, 0)])
            restate(book.ledger, key(1, day), [(DAY, 0), (2 * DAY, 0), (3 * DAY, 0), (7 * DAY, 0)])
        learned = {name: each.text for name, each in book.learned_due().items()}
        assert learned == {
            "demo/campaign_daily": "6h, 1d",
            "demo/campaign_daily of class quiet": "6h",
            "demo/clicks": "6h, 3d, 7d",
        }
        assert [book.explain(key(each)).learned.due[1:] for each in (0, 1)] == [(DAY,), ()]  # type: ignore[union-attr]
        assert book.universe().due_at(key(1)) == book.universe().due_at(key(0))
    explained = run("explain", str(key(0)), cwd=tmp_path)
    assert "Due: 6h, 1d, as days were restated so far." in explained.out
    assert "1d: changed by 2.00% since the point before, 40 compared" in explained.out
    said = run("explain", str(key(1)), "--format", "json", cwd=tmp_path).json["due_points"]
    assert (said["due"], said["reasons"][0][:12]) == (["6h"], "1d: no point")
    assert "demo/campaign_daily is due at 6h, 1d (auto)" in ask(tmp_path).said
