"""R-RUN-3: how runs end, through the commands: in several goes, and with two commands at once on one run."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import sealbook
from tests.acceptance.test_cli_run import DAYS, write_book
from tests.support.cli import SEALBOOK, run

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

MALFORMED = {"kind": "malformed", "customers": ["c1"], "dates": ["2026-01-02"]}
CAMPAIGNS, DEVICES = ("--query", "campaign_daily"), ("--query", "device_daily")


def snapshot(book: Path, run_id: str) -> Any:
    [found] = [each for each in run("runs", "--format", "json", cwd=book).json if each["runId"] == run_id]
    assert found["inconsistent"] == []
    return found


def open_run(book: Path) -> str:
    with sealbook.open(book) as opened:
        return str(opened.ledger.open_run())


def at_once(book: Path, *commands: Sequence[str]) -> None:
    """Run commands at the same time, each in a process of its own."""
    started = [
        subprocess.Popen([SEALBOOK, *command], cwd=book, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    for process in started:
        _, said = process.communicate(timeout=240)
        assert process.returncode in (0, 3), said


def test_a_run_in_several_goes(tmp_path: Path) -> None:
    """It goes on until its last partition has ended, whichever commands did what."""
    book = write_book(tmp_path, MALFORMED)
    run_id = open_run(book)
    assert run("extract", *DAYS, *CAMPAIGNS, "--run-id", run_id, cwd=book).code == 0
    assert run("validate", cwd=book).code == 3
    assert snapshot(book, run_id)["status"] == "RUNNING"
    assert run("load", "--customer", "c0", cwd=book).code == 0
    assert snapshot(book, run_id)["status"] == "RUNNING"  # only some of it is published
    assert run("load", cwd=book).code == 0
    ended = snapshot(book, run_id)
    assert ended["status"] == "COMPLETED"
    assert [len(step["attempts"]) for step in ended["steps"]] == [1, 1, 2]
    refused = run("extract", *DAYS, *CAMPAIGNS, "--run-id", run_id, cwd=book)
    assert refused.code == 1
    assert f"run {run_id} has ended" in refused.said


def test_two_commands_at_once_on_one_run(tmp_path: Path) -> None:
    """What each set out to do belongs to the run, and it ends once, with its log consistent."""
    book = write_book(tmp_path, MALFORMED)
    run_id = open_run(book)
    named = ("--run-id", run_id)
    at_once(book, ["extract", *DAYS, *CAMPAIGNS, *named], ["extract", *DAYS, *DEVICES, *named])
    extracted = snapshot(book, run_id)
    assert extracted["status"] == "RUNNING"
    assert len(extracted["steps"][0]["attempts"]) == 2
    assert extracted["counters"]["partitionsSealed"] == 12
    assert run("validate", *named, cwd=book).code == 3
    at_once(book, ["load"], ["load"])
    ended = snapshot(book, run_id)
    assert ended["status"] == "COMPLETED"
    assert ended["counters"]["partitionsPublished"] == 10  # c1 on the second day is bad in both queries
    assert run("ledger", "verify", cwd=book).code == 0
