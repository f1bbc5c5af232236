"""`sealbook lineage send`: to a file and to a real server, which may be down, refuse, or be held up."""

from __future__ import annotations

import json
import signal
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import sealbook
from tests.support.cli import SEALBOOK, run, run_process
from tests.support.demo_books import GOOD, write_demo_book
from tests.support.ledger import let_leases_run_out
from tests.support.lineage import check_event, go_through
from tests.support.receivers import AlertServer
from tests.support.statuses import key, write_status_book, yesterday

TOKEN = "t0ken-of-a-header"
EVENTS = 8
"""Of a run: it, and each of three steps, begins and ends."""


@pytest.fixture
def server() -> AlertServer:
    found = AlertServer()
    with found.up():
        pass  # from now on it has a port
    return found


def write(folder: Path, **lineage: Any) -> Path:
    """Write a book in which nothing is due, and a run has come to its end."""
    tomorrow = yesterday() + timedelta(days=2)
    others = {"lineage": lineage} if lineage else {}
    write_status_book(folder, "sqlite:///book.db", first_day=tomorrow, **others)
    with sealbook.open(folder) as book:
        go_through(book.ledger, [key("a", yesterday())])
    return folder


@pytest.fixture
def book(tmp_path: Path, server: AlertServer) -> Path:
    return write(tmp_path, url=server.url, headers={"Authorization": f"Bearer {TOKEN}"})


def test_a_file_gets_a_line_for_each_event(tmp_path: Path) -> None:
    book = write(tmp_path, path="told/lineage.jsonl", namespace="prod")
    assert run("lineage", cwd=book).said == "8 events were sent. "
    assert run("lineage", "send", cwd=book).said == "Nothing was outstanding. "
    assert run("lineage", "lag", "--format", "json", cwd=book).json == [{"events": 0, "seconds": 0.0}]
    lines = (book / "told" / "lineage.jsonl").read_text().splitlines()
    for line in lines:
        check_event(json.loads(line))
    assert run("lineage", "send", "--anew", cwd=book).code == 0
    assert (book / "told" / "lineage.jsonl").read_text().splitlines() == lines * 2


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "told").write_text("a file")
    ran = run("lineage", "send", cwd=write(tmp_path, path="told/lineage.jsonl"))
    assert ran.code == 1
    assert "lineage.jsonl cannot be written" in ran.said


def test_a_command_sends_what_it_did_and_fails_for_no_collector(tmp_path: Path) -> None:
    """A whole run on Spark: it and its steps are told, with what they did."""
    book = tmp_path / "book"
    write_demo_book(book, lineage={"path": "lineage.jsonl"})
    (book / "lineage.jsonl").mkdir()
    blocked = run_process("extract", GOOD, cwd=book)
    assert (blocked.code, "Lineage was not sent" in blocked.said) == (0, True)
    (book / "lineage.jsonl").rmdir()

    assert run_process("run", GOOD, cwd=book).code == 0
    told = [json.loads(line) for line in (book / "lineage.jsonl").read_text().splitlines()]
    for each in told:
        check_event(each)
    ended = [(each["job"]["name"], each["eventType"]) for each in told if each["eventType"] != "START"]
    assert ended == [
        ("run.extract", "COMPLETE"),
        *((name, "COMPLETE") for name in ("run.extract", "run.validate", "run.load", "run")),
    ]
    [loaded] = told[-2]["outputs"]
    assert loaded["outputFacets"]["outputStatistics"]["rowCount"] == 20


def test_a_server_that_is_down_or_refuses_gets_all_of_it_later(book: Path, server: AlertServer) -> None:
    down = run("lineage", "send", cwd=book)
    assert (down.code, server.batches) == (1, [])
    assert f"http://127.0.0.1:{server.port} did not answer" in down.said
    with server.up():
        server.code = 401
        refused = run("lineage", "send", cwd=book)
        assert refused.code == 1
        assert "answered 401" in refused.said
        assert "lineage.url" in refused.said
        server.batches.clear()
        server.code = 201
        assert run("lineage", "send", cwd=book).said == "8 events were sent. "
    events: list[Any] = server.batches
    for event in events:
        check_event(event)
    assert len(events) == EVENTS
    assert {each["Authorization"] for each in server.headers} == {f"Bearer {TOKEN}"}
    assert TOKEN not in down.said + refused.said
    assert "t0ken" not in down.said + refused.said


def test_one_that_was_killed_after_the_post_tells_it_again_under_the_same_id(
    book: Path, server: AlertServer
) -> None:
    server.may_answer.clear()
    with server.up():
        killed = subprocess.Popen([SEALBOOK, "lineage", "send"], cwd=book, stderr=subprocess.PIPE)
        assert server.has_one.wait(60)
        assert "another is sending lineage" in run("lineage", "send", cwd=book).said
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        server.may_answer.set()
        with sealbook.open(book) as opened:
            let_leases_run_out(opened.settings.ledger)
        assert run("lineage", "send", cwd=book).code == 0
    first, again, *others = server.batches
    assert first == again
    assert len(others) == EVENTS - 1


def test_a_loop_sends_and_a_server_that_is_down_stops_nothing(book: Path, server: AlertServer) -> None:
    ticked = run("control", "tick", cwd=book)
    assert ticked.code == 0, ticked.err
    assert "Lineage was not sent" in ticked.said
    with server.up():
        assert run("control", "tick", cwd=book).code == 0
    assert len(server.batches) == EVENTS


def test_the_doctor_says_what_is_outstanding(book: Path, server: AlertServer) -> None:
    def lineage() -> list[tuple[str, str]]:
        found = run("doctor", "--quick", "--format", "json", cwd=book).json
        return [(each["level"], each["text"]) for each in found if each["part"] == "lineage"]

    [(level, waits)] = lineage()
    assert (level, waits.split(" of ")[0]) == ("ok", "12 events")
    with server.up():
        run("lineage", "send", cwd=book)
    assert lineage() == [("ok", "all that the log has was told")]


def test_without_a_place_there_is_nothing_to_send_to(tmp_path: Path) -> None:
    ran = run("lineage", "send", cwd=write(tmp_path))
    assert ran.code == 2
    assert "`lineage` a path or a url" in ran.said
