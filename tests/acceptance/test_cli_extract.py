"""`sealbook extract` and `sealbook raw`, as a user types them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from sealbook.extract.sources.demo import demo_configuration
from sealbook.raw import RawStore
from tests.support.cli import SEALBOOK, Ran, interruptible, run
from tests.support.runs import new_run_id

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

DAY = ("--since", "2026-01-01", "--until", "2026-01-01")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book on the demo source, with one account that is disabled."""
    return write_demo_book(tmp_path, faults=[{"kind": "permanent", "customers": ["c2"]}])


def write_demo_book(folder: Path, **options: object) -> Path:
    """Write a book of three demo accounts."""
    settings = {
        "ledger": "sqlite:///sealbook.db",
        "raw": "raw",
        "warehouse": "warehouse",
        "sources": {
            "demo": {
                "queries": "demo.yaml",
                "customers": ["c0", "c1", "c2"],
                "options": {"rows": 5, **options},
            }
        },
        "spark": {"master": "local[2]"},
    }
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (folder / "demo.yaml").write_text(demo_configuration())
    return folder


def extract(book: Path, *arguments: str) -> Ran:
    return run("extract", *arguments, "--format", "json", cwd=book)


def test_what_fails_is_reported_and_the_rest_is_sealed(book: Path) -> None:
    ran = extract(book, *DAY)

    assert ran.code == 3
    by_ending = {
        ending: {row["customer_id"] for row in ran.json if row["ending"] == ending}
        for ending in ("sealed", "failed")
    }
    assert by_ending == {"sealed": {"c0", "c1"}, "failed": {"c2"}}
    assert {row["error_class"] for row in ran.json if row["ending"] == "failed"} == {"permanent"}
    assert len({row["run_id"] for row in ran.json}) == 1  # R-RUN-1: one run for all


def test_the_same_run_again_does_what_is_left(book: Path) -> None:
    run_id = str(new_run_id())
    extract(book, *DAY, "--run-id", run_id, "--customer", "c0")

    ran = extract(book, *DAY, "--run-id", run_id, "--customer", "c0", "--customer", "c1")

    assert ran.code == 0
    assert {(row["customer_id"], row["ending"]) for row in ran.json} == {("c0", "skipped"), ("c1", "sealed")}
    assert {row["run_id"] for row in ran.json} == {run_id}


def test_the_table_adds_up_by_query_and_shows_the_first_failures(book: Path) -> None:
    ran = run("extract", *DAY, cwd=book)

    assert ran.code == 3
    header, *rows = ran.out.splitlines()
    assert header.split() == ["query", "sealed", "skipped", "failed", "rows", "MB"]
    assert ["demo/campaign_daily", "2", "0", "1"] in [row.split()[:4] for row in rows]
    assert "3 partitions failed (permanent)" in ran.said  # equal reasons once
    keys = [f"demo/c2/{query}/2026-01-01" for query in ("ad_group_daily", "campaign_daily", "device_daily")]
    assert f"({', '.join(keys)})" in ran.said


def test_all_failed_is_failed_and_ends_the_run(book: Path) -> None:
    assert extract(book, *DAY, "--customer", "c2").code == 1
    [told] = run("runs", "--format", "json", cwd=book).json
    assert (told["status"], told["counters"]["partitionsFailed"]) == ("FAILED", 3)


def test_a_run_and_what_came_of_each_partition_is_in_the_log(book: Path) -> None:
    [run_id] = {row["run_id"] for row in extract(book, *DAY).json}

    [told] = run("runs", "--format", "json", cwd=book).json
    assert (told["runId"], told["status"]) == (run_id, "RUNNING")
    assert (told["counters"]["partitionsSealed"], told["counters"]["partitionsFailed"]) == (6, 3)
    types = [event["eventType"] for event in run("events", run_id, "--format", "json", cwd=book).json]
    assert types[:3] == ["RunQueued", "RunStarted", "StepStarted"]
    assert types[-1] == "StepCompleted"

    extract(book, *DAY, "--run-id", run_id)
    [again] = run("runs", "--format", "json", cwd=book).json
    assert again["counters"]["partitionsSealed"] == 6  # said again, counted once


@pytest.mark.parametrize(
    "arguments",
    [
        ("--since", "2026-01-02", "--until", "2026-01-01"),
        ("--since", "2026-02-30", "--until", "2026-03-01"),
        (*DAY, "--customer", "c9"),
        (*DAY, "--query", "no_such_query"),
        (*DAY, "--source", "google_ads"),
        (*DAY, "--run-id", "not-a-ulid"),
        (*DAY, "--day", "2026-01-01"),
        ("--since", "2026-01-01"),
    ],
)
def test_wrong_usage_writes_nothing(book: Path, arguments: tuple[str, ...]) -> None:
    ran = extract(book, *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err
    assert not (book / "raw").exists()


def test_raw_list_and_show_say_what_is_sealed(book: Path) -> None:
    extract(book, *DAY, "--customer", "c0")

    listed = run("raw", "list", "--query", "campaign_daily", "--format", "json", cwd=book)
    [seal] = listed.json
    assert (seal["customer_id"], seal["record_count"]) == ("c0", 5)
    assert "demo/c0/campaign_daily/2026-01-01" in run("raw", "list", cwd=book).out

    key = "demo/c0/campaign_daily/2026-01-01"
    [shown] = run("raw", "show", key, "--rows", "2", "--format", "json", cwd=book).json
    assert len(shown["rows"]) == 2
    assert shown["rows"][0]["segments_date"] == "2026-01-01"
    assert shown["payload_sha256"] == seal["payload_sha256"]
    text = run("raw", "show", key, "--run", seal["run_id"], cwd=book).out
    assert seal["payload_sha256"] in text
    assert text.count('"segments_date"') == 5


def test_raw_show_of_the_lines_that_a_check_names(book: Path) -> None:
    extract(book, *DAY, "--customer", "c0")
    key = "demo/c0/campaign_daily/2026-01-01"
    [whole] = run("raw", "show", key, "--rows", "5", "--format", "json", cwd=book).json
    [shown] = run("raw", "show", key, "--lines", "4,2,9999", "--format", "json", cwd=book).json
    assert (shown["lines"], shown["rows"]) == ([2, 4], [whole["rows"][1], whole["rows"][3]])
    assert "\nline 2: {" in run("raw", "show", key, "--lines", "2", cwd=book).out
    for wrong in ("0", "x", "1,,2", ""):
        assert run("raw", "show", key, "--lines", wrong, cwd=book).code == 2


def test_raw_show_of_what_is_not_sealed_says_so(book: Path) -> None:
    ran = run("raw", "show", "demo/c0/campaign_daily/2026-01-01", cwd=book)

    assert (ran.code, ran.out) == (1, "")
    assert "no sealed run" in ran.said


def test_ctrl_c_stops_cleanly_and_leaves_nothing_half_sealed(tmp_path: Path) -> None:
    book = write_demo_book(tmp_path, latency_seconds=0.2)
    run_id = str(new_run_id())
    span = ("--since", "2026-01-01", "--until", "2026-03-31", "--run-id", run_id)
    with subprocess.Popen(
        [SEALBOOK, "extract", *span],
        cwd=book,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,
    ) as process:
        store = RawStore.open(str(book / "raw"))
        deadline = time.monotonic() + 120
        while not any(True for _ in store.sealed()) and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Traceback" not in said
    sealed = list(store.sealed())
    assert 0 < len(sealed) < 810
    for key, sealed_run, _ in sealed:
        store.read(key, sealed_run).payload()  # checks bytes, digest and count against the seal


def test_what_no_seal_names_can_be_removed(book: Path) -> None:
    """R-RAW-2: by default only what is a week old; a dry run removes nothing."""
    extract(book, *DAY, "--customer", "c0")
    [sealed] = list(book.glob("raw/demo/customer_id=c0/query_name=campaign_daily/*/*/payload-*.jsonl"))
    leftovers = [sealed.with_name(f"payload-{name}.jsonl") for name in ("old", "young")]
    for leftover in leftovers:
        leftover.write_bytes(b"{}")
    a_week_ago = time.time() - 7.1 * 86_400
    for path in (leftovers[0], sealed):
        os.utime(path, (a_week_ago, a_week_ago))

    dry = run("raw", "gc", "--dry-run", "--format", "json", cwd=book)
    assert [row["path"].rpartition("/")[2] for row in dry.json] == ["payload-old.jsonl"]
    assert "Would remove 1 file" in dry.err
    assert leftovers[0].exists()
    refused = run("raw", "gc", "--older-than", "1d", cwd=book)
    assert (refused.code, "at least 2d" in refused.err) == (2, True)
    gone = run("raw", "gc", "--customer", "c0", cwd=book)
    assert "payload-old.jsonl" in gone.out
    assert [path.exists() for path in (*leftovers, sealed)] == [False, True, True]
