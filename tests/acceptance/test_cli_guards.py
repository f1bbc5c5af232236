"""What `run` and `extract` do not begin without a word: very much, and days that are not due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

import sealbook
from sealbook.extract.sources.demo import demo_configuration
from tests.support.books import contents
from tests.support.cli import answer, run

COMMANDS = ["run", "extract"]
TEN_YEARS = ("--since", "2016-01-01", "--until", "2025-12-31")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    settings = {
        "ledger": "sqlite:///book.db",
        "sources": {"demo": {"queries": "demo.yaml", "customers": ["c0"], "options": {"rows": 1}}},
        "spark": {"master": "Spark is not to be started"},
    }
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_ten_years_are_refused_where_nobody_can_be_asked(book: Path, command: str) -> None:
    before = contents(book)
    ran = run(command, *TEN_YEARS, cwd=book)
    assert ran.code == 2
    assert "that is much to fetch: 10,959 partitions of 3,653 days, 2016-01-01 … 2025-12-31" in ran.said
    assert "--yes" in ran.said
    assert contents(book) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_at_a_terminal_the_person_is_asked(book: Path, command: str) -> None:
    code, shown = answer(book, "n", command, *TEN_YEARS)
    assert code == 1
    assert "10,959 partitions of 3,653 days" in shown
    assert "Nothing was started." in shown
    assert not (book / "book.db").exists()


def begun(book: Path, *arguments: str) -> str:
    """Return what an extraction says that gets past all questions: it goes on with a run that has ended."""
    with sealbook.open(book) as opened:
        run_id = opened.ledger.open_run()
        opened.ledger.runs.cancel_run(run_id, actor="ann", reason="test")
    ran = run("extract", *arguments, "--run-id", str(run_id), cwd=book)
    assert f"run {run_id} has ended: nothing more is fetched as part of it" in ran.said
    return ran.said


def test_a_year_is_begun_without_a_question(book: Path) -> None:
    assert "1,098 partitions" in begun(book, "--since", "2024-01-01", "--until", "2024-12-31")


def test_a_scripts_yes_is_enough(book: Path) -> None:
    assert "10,959 partitions" in begun(book, *TEN_YEARS, "--yes")


def test_a_day_that_has_not_begun_can_be_forced(book: Path) -> None:
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    assert "3 partitions" in begun(book, "--day", str(tomorrow), "--force")


def test_days_that_accounts_do_not_have_are_left_out_with_a_word(book: Path) -> None:
    settings = yaml.safe_load((book / "sealbook.yaml").read_text())
    settings["sources"]["demo"] |= {"customers": ["c0", {"id": "c1", "first_day": "2024-01-03"}]}
    (book / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    said = begun(book, "--since", "2024-01-01", "--until", "2024-01-04")
    assert "18 partitions" in said
    assert "Left out: 6 partitions of days that the accounts do not have (first_day, last_day)" in said
    ran = run("run", "demo/c1/campaign_daily/2024-01-02", cwd=book)
    assert ran.code == 2
    assert "the account has no such day, but 2024-01-03 …" in ran.said
    assert "correct first_day and last_day in the settings" in ran.said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_day_begins_in_the_time_zone_of_the_account(book: Path, command: str) -> None:
    settings = yaml.safe_load((book / "sealbook.yaml").read_text())
    settings["sources"]["demo"]["time_zone"] = "Etc/GMT+12"
    (book / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    there = datetime.now(ZoneInfo("Etc/GMT+12")).date()
    ran = run(command, "--day", str(there + timedelta(days=1)), cwd=book)
    assert ran.code == 2
    assert f"today is {there} in Etc/GMT+12" in ran.said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_day_that_has_not_begun_is_refused(book: Path, command: str) -> None:
    today = datetime.now(UTC).date()
    before = contents(book)
    ran = run(command, "--since", str(today), "--until", str(today + timedelta(days=2)), cwd=book)
    assert ran.code == 2
    assert f"2 days have not begun of {today} … {today + timedelta(days=2)}" in ran.said
    assert f"--until {today}" in ran.said
    later = today + timedelta(days=7)
    ran = run(command, f"demo/c0/campaign_daily/{later}", cwd=book)
    assert ran.code == 2
    assert f"1 day has not begun of {later} … {later}" in ran.said
    assert contents(book) == before
