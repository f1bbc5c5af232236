"""The page of a partition: what the command prints, and nothing of its data as markup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sealbook
from sealbook.book import Book
from sealbook.model import Check
from tests.support.cli import run_process
from tests.support.console import VIC, asking
from tests.support.ledger import accept, reject, run_id
from tests.support.partitions import seal
from tests.support.statuses import days, key, write_status_book

[DAY] = days(1)
KEY = key("a", DAY)
PAGE = f"/partitions/{KEY}"
MARKUP = "<script>alert(1)</script>"
LINES = [f'{{"id": 1, "name": "{MARKUP}"}}'.encode(), b'{"id": 1, "name": "x"}']
REPEATED = Check("primary_key", passed=False, violations=2, lines=(1, 2), detail=f"2 lines repeat: {MARKUP}")


@pytest.fixture
def folder(tmp_path: Path, ledger_url: str) -> Path:
    return write_status_book(tmp_path, ledger_url, first_day=DAY)


@pytest.fixture
def book(folder: Path) -> Iterator[Book]:
    with sealbook.open(folder) as opened:
        yield opened


def test_json_is_what_the_command_prints(folder: Path, book: Book) -> None:
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, checks=(REPEATED,), error="bad")])
    book.catch_up()
    with asking(folder) as client:
        answer = client.get(f"{PAGE}.json").json()
    told = run_process("explain", str(KEY), "--full", "--format", "json", cwd=folder).json
    assert answer == told


def test_what_comes_from_data_is_text(folder: Path, book: Book) -> None:
    """Markup in lines, in what checks say, in errors, in reasons and in names."""
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, checks=(REPEATED,), error=f"bad {MARKUP}")])
    book.ledger.requeue([KEY], actor=f"ann {MARKUP}", reason=f"why {MARKUP}")
    book.catch_up()
    with asking(folder) as client:
        text = client.get(PAGE).text
        assert "<script>alert" not in text
        for said in ("&#34;name&#34;: &#34;&lt;script&gt;", "2 lines repeat: &lt;script&gt;",
                     "bad &lt;script&gt;", "ann &lt;script&gt;", "why &lt;script&gt;"):  # fmt: skip
            assert said in text
        wrong = client.get(f"/partitions/demo/{MARKUP.replace('/', '%2F')}/campaign_daily/{DAY}")
        assert wrong.status_code in (400, 404)
        assert "<script>alert" not in wrong.text
        assert client.get(f"{PAGE}?attempt={MARKUP}").status_code == 400


def test_buttons_are_for_who_may_act(folder: Path, book: Book) -> None:
    book.ledger.judge([reject(KEY)])
    book.catch_up()
    with asking(folder) as client:
        assert f'href="/actions/retry?key={KEY}"' in client.get(PAGE).text
    with asking(folder, VIC) as client:
        assert "/actions/" not in client.get(PAGE).text
    with asking(folder, read_only=True) as client:
        assert "/actions/" not in client.get(PAGE).text


def test_rows_are_shown_as_configured(folder: Path, book: Book) -> None:
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, checks=(REPEATED,), error="2 lines repeat: secret")])
    book.catch_up()
    with asking(folder, show_rows=False) as client:
        for path in (PAGE, f"{PAGE}.json"):
            text = client.get(path).text
            assert "alert(1)" not in text
            assert "secret" not in text
            assert "row content is switched off" in text
    with asking(folder, masked_columns=frozenset({"campaign_daily.name"})) as client:
        text = client.get(f"{PAGE}.json").text
        assert "alert(1)" not in text
        assert "•••" in text


def test_two_runs_are_compared(folder: Path, book: Book) -> None:
    columns = {"customer_id": "a", "date": str(DAY), "campaign_id": 1, "campaign_name": MARKUP}
    query = next(each for each in book.queries if each.name == "campaign_daily")
    names = [column.name for column in query.contracts["1"].columns]
    for run in (1, 2):
        seal(book, KEY, run, [_row(names, columns, run)])
        book.ledger.judge([accept(KEY, run, records=1)])
    book.catch_up()
    first, second = run_id(1), run_id(2)
    with asking(folder) as client:
        page = f"{PAGE}/compare"
        answer = client.get(f"{page}.json?before={first}&after={second}").json()
        text = client.get(f"{page}?before={first}&after={second}").text
        missing = client.get(f"/partitions/{key('b', DAY)}/compare")
    limit = ("--limit", "20", "--format", "json")
    assert answer == run_process("diff", str(KEY), first, second, *limit, cwd=folder).json
    assert "<script>alert" not in text
    assert answer[0]["changed"] == 1
    assert missing.status_code == 404
    with asking(folder, show_rows=False) as client:
        hidden = client.get(f"{page}.json?before={first}&after={second}").json()
    assert hidden[0]["changed"] == 1
    assert hidden[0]["sample"] == []
    assert all(each["total_before"] is None for each in hidden[0]["columns"])


def _row(names: list[str], values: dict[str, object], run: int) -> dict[str, object]:
    return {name: values.get(name, run) for name in names}
