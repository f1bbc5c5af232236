"""A command that finds nothing to do starts no Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sealbook.spark import session
from tests.acceptance.test_cli_run import write_book
from tests.support.cli import run

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

DAY = ("--day", "2026-01-02", "--query", "campaign_daily")
COMMANDS: list[tuple[str, ...]] = [
    ("validate",),
    ("validate", "--dry-run"),
    ("validate", "--rejected"),
    ("validate", "demo/c0/campaign_daily/2026-01-02"),
    ("load",),
    ("load", "--dry-run"),
]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A book in which a run has gone the whole way, and that run."""
    book = write_book(tmp_path_factory.mktemp("published"))
    ran = run("run", *DAY, "--format", "json", cwd=book)
    assert ran.code == 0, ran.err
    return book, ran.json["run_id"]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A book in which a run has sealed all that it set out to, and that run."""
    book = write_book(tmp_path_factory.mktemp("sealed"))
    ran = run("extract", *DAY, "--format", "json", cwd=book)
    assert ran.code == 0, ran.err
    return book, ran.json[0]["run_id"]


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_arguments: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(session, "spark_session", start)
    monkeypatch.setattr(session, "start_java", start)


@pytest.mark.parametrize("command", [*COMMANDS, ("validate", "--revalidate")], ids=" ".join)
@pytest.mark.usefixtures("no_spark")
def test_in_an_empty_book(tmp_path: Path, command: tuple[str, ...]) -> None:
    ran = run(*command, cwd=write_book(tmp_path))
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.usefixtures("no_spark")
def test_when_all_is_done(published: tuple[Path, str], command: tuple[str, ...]) -> None:
    ran = run(*command, cwd=published[0])
    assert ran.code == 0, ran.err


@pytest.mark.usefixtures("no_spark")
def test_a_run_that_has_ended(published: tuple[Path, str]) -> None:
    book, run_id = published
    assert run("run", *DAY, "--run-id", run_id, cwd=book).code == 0


@pytest.mark.usefixtures("no_spark")
def test_an_extraction_that_has_everything(sealed: tuple[Path, str], tmp_path: Path) -> None:
    book = shutil.copytree(sealed[0], tmp_path / "book")
    again = run("extract", *DAY, "--run-id", sealed[1], "--format", "json", cwd=book)
    assert again.code == 0, again.err
    assert [each["ending"] for each in again.json] == ["skipped"] * 3
    assert {each["record_count"] for each in again.json} == {5}


def test_what_an_extraction_has_left_needs_it(sealed: tuple[Path, str], tmp_path: Path) -> None:
    book = shutil.copytree(sealed[0], tmp_path / "book")
    shutil.rmtree(next(each for each in book.glob("raw/**/*c1*") if each.is_dir()))
    again = run("extract", *DAY, "--run-id", sealed[1], "--format", "json", cwd=book)
    assert again.code == 0, again.err
    assert {each["customer_id"]: each["ending"] for each in again.json} == {
        "c0": "skipped",
        "c1": "sealed",
        "c2": "skipped",
    }
