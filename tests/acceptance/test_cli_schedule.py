"""`sealbook state pause|resume|cancel`, `control leases|budget|pauses` and `sealbook audit`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import sealbook
from sealbook.book import Book
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model import RunId
from sealbook.model.partition_events import Stage
from sealbook.model.selection import Selection
from tests.support.cli import Ran, run
from tests.support.statuses import days, judge, key, rejected, write_status_book

DAYS = days(4)
WHY = ("--reason", "so it is", "--actor", "ann")
TERMS = Terms(["demo"])


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Path:
    """Two customers with four days each to fetch."""
    control = {"sources": {"demo": {"requests_per_day": 40}}}
    folder = write_status_book(tmp_path, ledger_url, customers=("a", "b"), first_day=DAYS[0], control=control)
    span = ("--since", str(DAYS[0]), "--until", str(DAYS[-1]), "--query", "campaign_daily")
    did(run("state", "backfill", *span, *WHY, cwd=folder))
    return folder


@pytest.fixture
def opened(book: Path) -> Iterator[Book]:
    with sealbook.open(book) as each:
        yield each


def did(ran: Ran, code: int = 0) -> Ran:
    assert ran.code == code, ran.err
    return ran


def listed(book: Path, *arguments: str) -> Any:
    return did(run(*arguments, "--format", "json", cwd=book)).json


def test_a_customer_is_paused_and_goes_on(book: Path, opened: Book) -> None:
    """R-CTL-7, R-CTL-9: just that scope waits."""
    scope = ("--source", "demo", "--customer-id", "a")
    dry = did(run("state", "pause", *scope, *WHY, "--dry-run", cwd=book))
    assert "demo/a/* would be paused: 4 partitions wait." in dry.said
    assert listed(book, "control", "pauses") == []
    did(run("state", "pause", *scope, "--until", "2h", *WHY, cwd=book))
    [pause] = listed(book, "control", "pauses")
    assert (pause["scope"], pause["cause"], pause["actor"], pause["reason"]) == (
        "demo/a/*", "operator", "ann", "so it is"
    )  # fmt: skip
    assert pause["until"] is not None
    claims = opened.ledger.scheduler.claim("bob", TERMS, limit=99)
    assert {claim.key.customer_id for claim in claims} == {"b"}
    wrong = did(run("state", "resume", "--source", "demo", *WHY, cwd=book), 1)
    assert "demo/*/* is not paused" in wrong.said
    assert "sealbook control pauses" in wrong.said
    did(run("state", "resume", *scope, *WHY, cwd=book))
    assert len(opened.ledger.scheduler.claim("bob", TERMS, limit=99)) == 4


def test_what_else_holds_a_scope_back_is_said_when_it_resumes(book: Path) -> None:
    did(run("state", "pause", "--source", "demo", *WHY, cwd=book))
    did(run("state", "pause", "--source", "demo", "--query", "campaign_daily", *WHY, cwd=book))
    ran = did(run("state", "resume", "--source", "demo", "--query", "campaign_daily", *WHY, cwd=book))
    assert "demo/*/campaign_daily goes on." in ran.said
    assert "demo/*/* is paused still." in ran.said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--source", "nope"), "no source nope is configured"),
        (("--source", "demo", "--customer-id", "zz"), "no customer zz is configured"),
        (("--source", "demo", "--until", "soon"), "a span such as 2h or 3d"),
        (("--source", "demo", "--until", "2020-01-01"), "expected a time after now"),
        ((), "Missing option '--source'"),
    ],
)
def test_what_cannot_be_paused(book: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in did(run("state", "pause", *arguments, *WHY, cwd=book), 2).said
    assert listed(book, "control", "pauses") == []


def test_who_works_on_what_since_when(book: Path, opened: Book) -> None:
    assert "Nobody works on anything." in did(run("control", "leases", cwd=book)).said
    opened.ledger.scheduler.claim("bob", TERMS, limit=3)
    opened.ledger.scheduler.claim("cy", TERMS, limit=1, lease=timedelta(microseconds=1))
    ran = did(run("control", "leases", cwd=book))
    assert "4 partitions held by 2 holders; 1 lease has run out" in ran.said
    assert ran.out.count("bob") == 3
    [expired] = listed(book, "control", "leases", "--expired")
    assert (expired["holder"], expired["expired"], expired["kind"]) == ("cy", True, "fetch")
    assert len(listed(book, "control", "leases", "--limit", "2")) == 2


def test_what_a_source_was_asked_and_what_is_left(book: Path, opened: Book) -> None:
    claims = opened.ledger.scheduler.claim("bob", TERMS, limit=3)
    rows = {each["lane"]: each for each in listed(book, "control", "budget")}
    assert (rows["backfill"]["used"], rows["backfill"]["share"], rows["backfill"]["left"]) == (3, 6, 37)
    assert rows["backfill"]["next_room_at"] is None, "nothing is spent yet"
    opened.ledger.scheduler.settle({each.id: 2 for each in claims.reservations})
    ran = did(run("control", "budget", cwd=book))
    assert "demo: 38 of 40 left; more from" in ran.said


def test_a_run_is_cancelled_and_that_is_logged(book: Path, opened: Book) -> None:
    """R-CTL-3. What it was to do is not done, and somebody said so."""
    run_id: RunId = opened.ledger.open_run()
    partition = key("a", DAYS[0])
    opened.ledger.runs.open_steps(Stage.EXTRACT, [run_id], [Selection(keys=[partition])])
    dry = did(run("state", "cancel", run_id, *WHY, "--dry-run", "--format", "json", cwd=book))
    assert dry.json == {"run_id": run_id, "partitions": [str(partition)], "dry_run": True}
    ran = did(run("state", "cancel", run_id, *WHY, cwd=book))
    assert f"Run {run_id} is cancelled: 1 partition will not be done." in ran.said
    assert "has ended already" in did(run("state", "cancel", run_id, *WHY, cwd=book), 1).said
    [entry] = listed(book, "audit", "--action", "cancel")
    assert (entry["run_id"], entry["partitions"], entry["actor"]) == (run_id, [str(partition)], "ann")


def test_who_did_what_is_found_by_what_by_whom_and_by_partition(book: Path) -> None:
    judge(book, [rejected(key("a", DAYS[0]))])
    did(run("state", "terminal", "mark", str(key("a", DAYS[0])), "--reason", "x", "--actor", "bob", cwd=book))
    did(run("state", "pause", "--source", "demo", "--customer-id", "b", *WHY, cwd=book))

    def actions(*arguments: str) -> list[str]:
        return [each["action"] for each in listed(book, "audit", *arguments)]

    assert actions() == ["pause", "mark", "backfill"], "the latest first"
    assert actions("--limit", "1") == ["pause"]
    assert actions("--actor", "bob") == ["mark"]
    assert actions("--action", "pause", "--action", "mark") == ["pause", "mark"]
    assert actions("--customer", "a") == ["mark", "backfill"]
    assert actions("--customer", "b") == ["pause", "backfill"]
    assert actions(str(key("b", DAYS[1]))) == ["pause", "backfill"]
    assert actions("--query", "device_daily") == ["pause"], "all of its queries were paused"
    assert actions("--to", str(DAYS[0])) == []
    assert actions("--from", str(DAYS[0])) == ["pause", "mark", "backfill"]
    [_, marked, backfill] = listed(book, "audit")
    assert (marked["reason"], marked["filter"]["plan"]) == ("x", 2)
    assert len(backfill["partitions"]) == 8
    assert backfill["filter"]["queries"] == ["campaign_daily"]
    table = did(run("audit", cwd=book)).out
    assert "demo/b/*" in table
    assert f"plan 2; {key('a', DAYS[0])}" in table


def test_an_action_or_time_that_there_is_not(book: Path) -> None:
    assert "expected one of requeue, rollback" in did(run("audit", "--action", "x", cwd=book), 2).said
    assert "a day or a time in UTC" in did(run("audit", "--from", "x", cwd=book), 2).said
    assert "Nothing of the kind" in did(run("audit", "--actor", "nobody", cwd=book)).said
