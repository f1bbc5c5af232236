"""`sealbook run`: the whole way in one command, and how it goes on after a kill; `sealbook state cancel`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import sealbook
from sealbook.extract.sources.demo import demo_configuration
from sealbook.model import RunId
from sealbook.raw import RawStore
from tests.support.cli import SEALBOOK, Ran, run

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

DAYS = ("--day", "2026-01-02", "--lookback", "2")
DISABLED = {"kind": "permanent", "customers": ["c2"]}
MALFORMED = {"kind": "malformed", "customers": ["c1"], "dates": ["2026-01-02"]}
ONE_QUERY = ("--query", "campaign_daily")


def write_book(folder: Path, *faults: Mapping[str, object], **options: object) -> Path:
    """Write a book of three demo accounts in which these things go wrong."""
    demo = {
        "queries": "demo.yaml",
        "customers": ["c0", "c1", "c2"],
        "options": {"rows": 5, "faults": [dict(fault) for fault in faults], **options},
    }
    settings = {
        "ledger": "sqlite:///book.db",
        "raw": "raw",
        "warehouse": "warehouse",
        "sources": {"demo": demo},
        "spark": {"master": "local[2]"},
    }
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (folder / "demo.yaml").write_text(demo_configuration())
    return folder


def run_json(book: Path, *arguments: str) -> Ran:
    return run("run", *arguments, "--format", "json", cwd=book)


def status_of(book: Path, run_id: str) -> Any:
    [found] = [each for each in run("runs", "--format", "json", cwd=book).json if each["runId"] == run_id]
    return found["status"]


def test_everything_published_is_0(tmp_path: Path) -> None:
    book = write_book(tmp_path)
    ran = run_json(book, *DAYS)

    assert ran.code == 0, ran.err
    assert list(ran.json) == ["run_id", "status", "counts", "reasons", "not_published"]
    assert (ran.json["status"], ran.json["not_published"]) == ("COMPLETED", [])
    counts = ran.json["counts"]
    assert counts["extract"] == {"sealed": 18, "skipped": 0, "failed": 0}
    assert counts["validate"] == {"accepted": 18, "rejected": 0, "not_judged": 0}
    assert counts["load"]["loaded"] == 18
    assert "2026-01-01 … 2026-01-02, 18 partitions" in ran.said
    assert run("warehouse", "verify", cwd=book).code == 0
    assert run("ledger", "verify", cwd=book).code == 0


def test_some_published_is_3_and_says_what_is_not_and_why(tmp_path: Path) -> None:
    book = write_book(tmp_path, DISABLED, MALFORMED)
    ran = run("run", *DAYS, *ONE_QUERY, cwd=book)

    assert ran.code == 3
    lines = ran.out.splitlines()
    assert lines[:4] == [
        "extract   4 sealed, 2 failed",
        "validate  3 accepted, 1 rejected",
        "load      3 new",
        "not published",
    ]
    failed, which, rejected = lines[4:]
    assert failed.split()[:4] == ["2", "partitions", "extract", "failed"]
    assert "is disabled" in failed
    assert which == "    demo/c2/campaign_daily/2026-01-01, demo/c2/campaign_daily/2026-01-02"
    assert rejected.split()[:3] == ["demo/c1/campaign_daily/2026-01-02", "validate", "rejected"]
    assert "no JSON object" in rejected
    both = "demo/c2/campaign_daily/2026-01-01 demo/c2/campaign_daily/2026-01-02"
    assert f"next: sealbook run {both}" in ran.said


def test_many_with_one_reason_are_one_line_and_a_few_names(tmp_path: Path) -> None:
    book = write_book(tmp_path, DISABLED)
    ran = run(
        "run", "--day", "2026-01-04", "--lookback", "4", "--customer", "c2", "--customer", "c0", cwd=book
    )

    assert ran.code == 3
    reason, which = ran.out.splitlines()[-2:]
    assert reason.startswith("  12 partitions  extract failed  the demo account is disabled")
    assert which.startswith("    demo/c2/ad_group_daily/2026-01-01, ")
    assert which.endswith(" … and 9 more")


def test_nothing_published_is_1(tmp_path: Path) -> None:
    book = write_book(tmp_path, DISABLED)
    ran = run_json(book, *DAYS, *ONE_QUERY, "--customer", "c2")

    assert (ran.code, ran.json["status"]) == (1, "FAILED")
    assert {each["reason"] for each in ran.json["not_published"]}
    assert {each["stage"] for each in ran.json["not_published"]} == {"extract"}


def test_a_run_that_has_ended_says_so(tmp_path: Path) -> None:
    book = write_book(tmp_path, DISABLED)
    good = run_json(book, *DAYS, *ONE_QUERY, "--customer", "c0").json["run_id"]
    bad = run_json(book, *DAYS, *ONE_QUERY, "--customer", "c2").json["run_id"]

    for run_id, code, status in ((good, 0, "COMPLETED"), (bad, 1, "FAILED")):
        again = run("run", *DAYS, "--run-id", run_id, cwd=book)
        assert (again.code, again.out) == (code, "")
        assert f"Run {run_id} has ended already: {status}" in again.said


def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    book = write_book(tmp_path, MALFORMED, latency_seconds=0.3)
    span = ("--since", "2026-01-01", "--until", "2026-01-20", *ONE_QUERY)
    store = RawStore.open(str(book / "raw"))
    with subprocess.Popen(
        [SEALBOOK, "run", *span], cwd=book, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 120
        while not any(True for _ in store.sealed()) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    sealed = sum(1 for _ in store.sealed())
    assert 0 < sealed < 60
    [killed] = run("runs", "--format", "json", cwd=book).json
    assert killed["status"] == "RUNNING"

    ran = run_json(book, *span, "--run-id", killed["runId"])

    assert ran.code == 3
    assert (ran.json["run_id"], ran.json["status"]) == (killed["runId"], "COMPLETED")
    extracted = ran.json["counts"]["extract"]
    assert extracted["skipped"] >= sealed  # a worker may have sealed one more before it noticed
    assert extracted["skipped"] + extracted["sealed"] == 60
    assert ran.json["counts"]["validate"] == {"accepted": 59, "rejected": 1, "not_judged": 0}


def test_what_an_earlier_go_rejected_is_still_not_published(tmp_path: Path) -> None:
    book = write_book(tmp_path, MALFORMED)
    with sealbook.open(book) as opened:
        run_id = str(opened.ledger.open_run())
    assert run("extract", *DAYS, *ONE_QUERY, "--run-id", run_id, cwd=book).code == 0
    assert run("validate", "--run-id", run_id, cwd=book).code == 3

    ran = run_json(book, *DAYS, *ONE_QUERY, "--run-id", run_id)

    assert ran.code == 3
    assert ran.json["counts"]["load"]["loaded"] == 5
    [missed] = ran.json["not_published"]
    assert (missed["customer_id"], missed["stage"], missed["ending"]) == ("c1", "validate", "rejected")


def test_a_run_is_cancelled_on_purpose(tmp_path: Path) -> None:
    book = write_book(tmp_path, DISABLED)
    sealed = run("extract", *DAYS, *ONE_QUERY, "--format", "json", cwd=book).json
    run_id = RunId(sealed[0]["run_id"])
    assert status_of(book, run_id) == "RUNNING"

    cancelled = run("state", "cancel", run_id, "--reason", "wrong week", "--actor", "ann", cwd=book)

    assert (cancelled.code, cancelled.out) == (0, "")
    assert "4 partitions will not be done" in cancelled.said
    assert status_of(book, run_id) == "CANCELLED"
    assert "stopped by ann: wrong week" in run("runs", cwd=book).out
    again = run("state", "cancel", run_id, "--reason", "wrong week", cwd=book)
    assert again.code == 1
    assert "has ended already" in again.said
    assert run("run", *DAYS, "--run-id", run_id, cwd=book).code == 1
