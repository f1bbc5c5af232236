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
from tests.support.ledger import reject, run_id
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
        assert client.get(f"{PAGE}?attempt={'9' * 5000}").status_code == 400


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
        told = client.get(f"/runs/{run_id(1)}").text
        assert "2 lines repeat" in told
        assert "secret" not in told + client.get(f"/runs/{run_id(1)}.json").text
    with asking(folder, masked_columns=frozenset({"campaign_daily.name"})) as client:
        text = client.get(f"{PAGE}.json").text
        assert "alert(1)" not in text
        assert "•••" in text
        assert "secret" not in client.get(f"/runs/{run_id(1)}").text
    with asking(folder) as client:
        assert "secret" in client.get(f"/runs/{run_id(1)}").text


def test_two_runs_are_compared(folder: Path, book: Book) -> None:
    row = {
        "campaign_id": 1, "campaign_name": MARKUP, "campaign_status": None, "segments_device": "TV",
        "segments_date": str(DAY), "metrics_impressions": 9, "metrics_conversions": 1.5,
        "metrics_cost_micros": 0,
    }  # fmt: skip
    for run in (1, 2):
        seal(book, KEY, run, [{**row, "metrics_clicks": run, "campaign_name": f"{run} {MARKUP}"}])
    book.catch_up()
    page = f"{PAGE}/compare?before={run_id(1)}&after={run_id(2)}"
    with asking(folder) as client:
        text = client.get(page).text
        missing = client.get(f"/partitions/{key('b', DAY)}/compare")
    assert "<script>alert" not in text
    assert "0 added, 0 removed, 1 changed, 0 unchanged" in text
    assert "<del>1</del> → <ins>2</ins>" in text
    assert missing.status_code == 404
    beside = page.replace("compare", "compare.json")
    with asking(folder, show_rows=False) as client:
        [hidden] = client.get(beside).json()
    assert (hidden["changed"], hidden["sample"]) == (1, [])
    assert all(each["total_before"] is None for each in hidden["columns"])
    with asking(folder, masked_columns=frozenset({"campaign_name", "campaign_id"})) as client:
        [masked] = client.get(beside).json()
    assert masked["sample"][0]["after"] == {"campaign_name": "•••", "metrics_clicks": 2}
    assert masked["sample"][0]["primary_key"] == {"campaign_id": "•••", "segments_device": "TV"}
    totals = {each["name"]: each["total_after"] for each in masked["columns"]}
    assert (totals["campaign_id"], totals["metrics_clicks"]) == (None, 2)
