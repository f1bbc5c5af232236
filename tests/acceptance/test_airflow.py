"""A real Airflow on SQLite, as a user has it: DAGs in its folder, run by its own command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import sealbook
from tests.support.apart import AIRFLOW, SUPPORT, run_beside
from tests.support.cli import run
from tests.support.demo_books import write_demo_book
from tests.support.pages import blocks

pytestmark = pytest.mark.xdist_group("airflow")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of which nothing is fetched yet."""
    folder = tmp_path_factory.mktemp("book")
    write_demo_book(folder)
    assert run("ledger", "migrate", cwd=folder).code == 0
    return folder


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory, book: Path) -> Mapping[str, str]:
    """The environment of an Airflow that has our DAGs."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    shutil.copy(SUPPORT / "airflow_dags.py", home / "dags")
    for each in blocks("how-to/airflow.md"):
        if each.file is not None:
            (home / each.file).write_text(each.text.replace("/srv/book", str(book)))
    env = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "SEALBOOK_TEST_BOOK": str(book),
    }
    migrated = run_beside(AIRFLOW, "-m", "airflow", "db", "migrate", cwd=home, env=env)
    assert migrated.returncode == 0, migrated.stdout
    return env


def readable(book: Path) -> set[str]:
    """Return the days that can be read of an account."""
    with sealbook.open(book, read_only=True) as opened:
        covered = opened.coverage("campaign_daily", customers="1001")
    return {str(each.logical_date) for each in covered if each.kind == "published"}


def outcome_of(dag: str, book: Path, airflow: Mapping[str, str]) -> tuple[int, str]:
    """Run a DAG once, and return how it ended and what it said."""
    ran = run_beside(AIRFLOW, "-m", "airflow", "dags", "test", dag, cwd=book, env=airflow)
    return ran.returncode, ran.stdout


def test_the_dag_of_the_page_runs_the_pipeline_and_waits(book: Path, airflow: Mapping[str, str]) -> None:
    code, said = outcome_of("campaigns", book, airflow)
    assert code == 0, said
    assert "2026-01-01" in readable(book)


def test_a_sensor_waits_in_the_triggerer_for_what_is_published_meanwhile(
    book: Path, airflow: Mapping[str, str]
) -> None:
    code, said = outcome_of("overtaken", book, airflow)
    assert code == 0, said
    assert "deferred: <sealbook.airflow.triggers.PublishedTrigger" in said
    assert "2026-01-02" in readable(book)


def test_what_waiting_cannot_mend_fails_at_once(book: Path, airflow: Mapping[str, str]) -> None:
    code, said = outcome_of("unknown_query", book, airflow)
    assert code == 1
    assert "no query nonsense is configured" in said
    assert "UP_FOR_RETRY" not in said


def test_a_run_that_publishes_nothing_fails_its_task(book: Path, airflow: Mapping[str, str]) -> None:
    code, said = outcome_of("rejected_day", book, airflow)
    assert code == 1
    assert "nothing was published" in said


def test_airflow_finds_no_fault_with_the_dags(book: Path, airflow: Mapping[str, str]) -> None:
    listed = run_beside(AIRFLOW, "-m", "airflow", "dags", "list-import-errors", cwd=book, env=airflow)
    assert listed.returncode == 0, listed.stdout


def test_changes_wake_an_asset_and_the_ledger_keeps_how_far_it_was_told(
    book: Path, airflow: Mapping[str, str], tmp_path: Path
) -> None:
    written = tmp_path / "events.json"
    ran = run_beside(
        AIRFLOW, str(SUPPORT / "airflow_events.py"), str(book), str(written), cwd=tmp_path, env=airflow
    )
    assert ran.returncode == 0, ran.stdout
    first, second = json.loads(written.read_text())
    day = "demo/1001/campaign_daily/2026-01-01"
    assert day in first["partitions"]
    assert second["partitions"] == [day]
    told = [each["to_run_id"] for each in first["items"] if each["logical_date"] == "2026-01-01"]
    assert [(each["kind"], each["from_run_id"]) for each in second["items"]] == [("replaced", told[-1])]
    with sealbook.open(book, read_only=True) as opened:
        [kept] = opened.ledger.pointers.consumers()
    # Of the first it is known that Airflow has it: the trigger went on. The second is told again.
    assert (kept.name, kept.token) == ("airflow", first["token"])
