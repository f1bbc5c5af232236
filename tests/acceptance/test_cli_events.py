"""`sealbook runs`, `events` and `project`, as a user types them; and what extraction says of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import sealbook
from sealbook.model import RunEvent, RunId
from sealbook.model.partition_events import Stage
from sealbook.model.run_snapshot import RunStatus
from sealbook.model.step_events import run_ended, run_started, step_started
from tests.support.books import write_book
from tests.support.cli import SEALBOOK, interruptible, run
from tests.support.ledger import KEY
from tests.support.runs import new_run_id
from tests.support.validation import accept


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book with one run that has begun."""
    write_book(tmp_path)
    return tmp_path


@pytest.fixture
def run_id(book: Path) -> RunId:
    """A run of that book."""
    begun = new_run_id()
    with sealbook.open(book) as opened:
        opened.ledger.run_store.append_events([run_started(begun), step_started(begun, Stage.EXTRACT)])
    return begun


def test_runs_shows_what_was_appended_without_a_daemon(book: Path, run_id: RunId) -> None:
    [shown] = run("runs", "--format", "json", cwd=book).json

    assert (shown["runId"], shown["status"], shown["stale"]) == (run_id, "RUNNING", False)
    assert run_id in run("runs", cwd=book).out


def test_runs_remarks_what_is_wrong_and_how_long_it_took(book: Path, run_id: RunId) -> None:
    with sealbook.open(book) as opened:
        again = RunEvent.new(run_id, "RunStarted", None, 2)
        opened.ledger.run_store.append_events([again, run_ended(run_id, RunStatus.FAILED, error="no quota")])

    [shown] = run("runs", "--format", "json", cwd=book).json
    assert shown["durationSeconds"] >= 0
    assert "no quota; inconsistent (events skipped: 1)" in run("runs", cwd=book).out


def test_runs_of_an_empty_book_is_empty(book: Path) -> None:
    assert run("runs", "--format", "json", cwd=book).json == []


def test_events_of_a_run_in_order_and_by_type(book: Path, run_id: RunId) -> None:
    everything = run("events", run_id, "--format", "json", cwd=book).json
    assert [(event["runSeq"], event["eventType"]) for event in everything] == [
        (1, "RunStarted"),
        (2, "StepStarted"),
    ]

    one = run("events", "show", run_id, "--type", "StepStarted", "--format", "json", cwd=book).json
    assert [event["runSeq"] for event in one] == [2]
    assert "StepStarted  extract" in run("events", run_id, cwd=book).out
    none = run("events", run_id, "--type", "StepStart", cwd=book)
    assert (none.code, none.out) == (0, "")
    assert "no event of this type" in none.said


def test_events_of_an_unknown_run_says_so(book: Path) -> None:
    ran = run("events", new_run_id(), cwd=book)

    assert (ran.code, ran.out) == (1, "")
    assert "there is no run" in ran.said


def test_follow_goes_on_with_what_comes_until_ctrl_c(book: Path, run_id: RunId) -> None:
    with subprocess.Popen(
        [SEALBOOK, "events", run_id, "--follow", "--format", "json"],
        cwd=book,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,
    ) as process:
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline()) for _ in range(2)]
        with sealbook.open(book) as opened:
            opened.ledger.run_store.append_event(step_started(run_id, Stage.VALIDATE))
        later = json.loads(process.stdout.readline())
        os.kill(process.pid, signal.SIGINT)
        process.wait(timeout=30)

    assert [event["runSeq"] for event in [*first, later]] == [1, 2, 3]
    assert process.returncode == 130


def test_project_catches_up_and_rebuilds_and_tells_its_lag(book: Path, run_id: RunId) -> None:
    [before] = run("project", "lag", "--format", "json", cwd=book).json
    assert before["events"] == 2

    assert "2 behind the log" in run("project", "lag", cwd=book).out
    assert "Up to date" in run("project", cwd=book).said
    [after] = run("project", "lag", "--format", "json", cwd=book).json
    assert (after["events"], after["alert"]) == (0, None)

    assert run("project", "--rebuild", cwd=book).code == 0
    assert run("runs", "--format", "json", cwd=book).json[0]["runId"] == run_id


def test_export_wants_a_new_folder(book: Path, run_id: RunId) -> None:
    (book / "taken").mkdir()
    (book / "taken" / "file").touch()

    ran = run("events", "export", "--to", "taken", cwd=book)

    assert ran.code == 2
    assert "not empty" in ran.said
    assert run("events", "export", "--to", "taken/file", cwd=book).code == 2
    exported = run("events", "export", "--to", "log", cwd=book)
    assert (exported.code, exported.out) == (0, "")
    assert list((book / "log").glob("bucket=*/part-00000.parquet"))
    assert run_id


@pytest.fixture
def ended(book: Path) -> RunId:
    """A run that has judged a partition, and ended."""
    begun = new_run_id()
    with sealbook.open(book) as opened:
        opened.ledger.run_store.append_event(run_started(begun))
        opened.ledger.judge([accept(KEY, begun, 10)])
        opened.ledger.run_store.append_event(run_ended(begun, RunStatus.COMPLETED))
    return begun


def test_retired_runs_are_found_in_the_archive(book: Path, run_id: RunId, ended: RunId) -> None:
    """What a user asks for is the same before and after; a run that goes on stays."""
    questions = (("events", ended), ("state", "history", str(KEY)), ("ledger", "verify"))

    def answers() -> list[tuple[int, str, str]]:
        ran = [run(*question, cwd=book) for question in questions]
        return [(each.code, each.out, each.said) for each in ran]

    before = answers()
    assert "differences: 0" in before[2][2]
    due = run("events", "retire", "--older-than", "0d", "--dry-run", "--format", "json", cwd=book)
    assert [(each["run_id"], each["became"]) for each in due.json] == [(run_id, "open"), (ended, "due")]
    assert "Would retire 1 run, 3 events; not ended: 1" in due.said
    assert answers() == before

    done = run("events", "retire", "--older-than", "0d", "--reason", "old", cwd=book)
    assert (done.code, "Retired 1 run, 3 events; not ended: 1" in done.said) == (0, True)
    assert ended in done.out
    assert answers() == before
    assert [each["runId"] for each in run("runs", "--format", "json", cwd=book).json] == [run_id]
    assert list((book / "archive").glob(f"run_id={ended}/*.parquet"))


def test_retention_is_a_setting(book: Path, ended: RunId) -> None:
    """Without one, the command says so and does nothing; a cron job needs no options."""
    unset = run("events", "retire", cwd=book)
    assert (unset.code, unset.out) == (2, "")
    assert "no retention is configured" in unset.said
    assert run("events", "retire", "--older-than", "soon", cwd=book).code == 2

    settings = book / "sealbook.yaml"
    settings.write_text(settings.read_text() + "retention: {events: 0d, archive: old_runs}\n")
    assert "Retired 1 run" in run("events", "retire", cwd=book).said
    assert list((book / "old_runs").glob(f"run_id={ended}/*.json"))
    settings.write_text(settings.read_text().replace("old_runs", "raw"))
    assert "a folder or prefix of its own" in run("events", "retire", cwd=book).said
