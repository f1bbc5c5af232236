"""`sealbook backfill`: progress, pause, resume, cancel, and what failed of one, by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sealbook
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model.claims import Claims
from tests.support.cli import Ran, run
from tests.support.commands import check_command
from tests.support.pointers import load
from tests.support.statuses import accepted, days, judge, key, rejected, write_status_book

DAYS = days(10)
KEYS = [key("a", day) for day in DAYS]
WHY = ("--reason", "so it is", "--actor", "ann")


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Path:
    """A book with a backfill of ten days."""
    folder = write_status_book(
        tmp_path, ledger_url, customers=("a",), first_day=DAYS[0], freshness={"due": ["0h"]}
    )
    with sealbook.open(folder):
        pass
    span = ("--since", str(DAYS[0]), "--until", str(DAYS[-1]), "--query", "campaign_daily")
    did(run("state", "backfill", *span, "--name", "autumn", *WHY, cwd=folder))
    return folder


def did(ran: Ran, code: int = 0) -> Ran:
    assert ran.code == code, ran.err
    return ran


def claim(book: Path, limit: int = 99) -> Claims:
    with sealbook.open(book) as opened:
        return opened.ledger.scheduler.claim("bob", Terms(["demo"]), limit=limit)


def shown(book: Path, name: str = "autumn") -> dict[str, Any]:
    found: dict[str, Any] = did(run("backfill", "show", name, "--format", "json", cwd=book)).json
    return found


def progress(book: Path) -> tuple[str, int, int, int, int]:
    row = shown(book)
    return row["state"], row["done"], row["waiting"], row["held"], row["stopped"]


def test_its_progress_is_shown(book: Path) -> None:
    judge(book, [*(accepted(each) for each in KEYS[:4]), rejected(KEYS[4])])
    assert len(claim(book, 2)) == 2
    assert progress(book) == ("open", 4, 4, 2, 0)
    ran = did(run("backfill", "show", "autumn", cwd=book))
    assert f"{KEYS[4]}      1" in ran.out
    assert "4 of 10 partitions are done, 4 open, 2 being worked on." in ran.said
    assert "sealbook backfill retry autumn --reason '…'" in ran.said
    [failed] = shown(book)["failed"]
    assert (failed["error"], failed["tries"], failed["stop"]) == ("bad", 1, None)
    [listed] = did(run("backfill", "--format", "json", cwd=book)).json
    assert (listed["plan_id"], listed["name"], listed["partitions"]) == (1, "autumn", 10)
    assert shown(book, "1")["name"] == "autumn"


def test_it_is_done_when_all_of_it_is(book: Path) -> None:
    judge(book, [accepted(each) for each in KEYS])
    assert progress(book) == ("done", 10, 0, 0, 0)


def test_it_is_paused_and_goes_on(book: Path) -> None:
    did(run("backfill", "pause", "autumn", *WHY, "--dry-run", cwd=book))
    assert progress(book)[0] == "open"
    did(run("backfill", "pause", "autumn", *WHY, cwd=book))
    assert (progress(book)[0], len(claim(book))) == ("paused", 0)
    again = did(run("backfill", "pause", "autumn", *WHY, cwd=book), 1)
    assert "plan 1 is paused, not open" in again.said
    did(run("backfill", "resume", "autumn", *WHY, cwd=book))
    assert (progress(book)[0], len(claim(book))) == ("open", 10)


def test_no_round_opens_a_cancelled_one_again(book: Path) -> None:
    """What it leaves undone stays so until somebody wants it: then it is fetched."""
    judge(book, [accepted(KEYS[0])])
    ran = did(run("backfill", "cancel", "autumn", *WHY, cwd=book))
    assert "1 of 10 partitions are done, 9 left undone." in ran.said
    with sealbook.open(book) as opened:
        opened.catch_up()
        opened.ledger.rounds.open_due(opened.expectations())
        found = {each.key: each for each in opened.ledger.reader.schedule.open_work()}
    assert all(found[each].work.stop is not None for each in KEYS[1:]), "the round found them taken"
    assert KEYS[0] not in found
    assert "plan 1 is cancelled" in did(run("backfill", "resume", "autumn", *WHY, cwd=book), 1).said
    assert "plan 1 is cancelled" in did(run("backfill", "retry", "autumn", *WHY, cwd=book), 1).said
    one = did(
        run("state", "backfill", *map(str, KEYS), "--name", "autumn", *WHY, "--format", "json", cwd=book)
    )
    assert (one.json["partitions"], one.json["left_out"]["good"]) == (9, 1)
    assert shown(book)["plan_id"] == 2, "the newest of a name"
    assert {claimed.key for claimed in claim(book)} >= {*KEYS[1:]}


def test_who_works_on_a_cancelled_one_can_judge_nothing_any_more(book: Path) -> None:
    fences = claim(book, 3).fences
    did(run("backfill", "cancel", "autumn", *WHY, cwd=book))
    with sealbook.open(book) as opened:
        assert opened.ledger.verdicts.judge_under([accepted(each) for each in fences], fences).states == []


def test_what_failed_of_it_is_taken_up_at_once(book: Path) -> None:
    judge(book, [rejected(each) for each in KEYS[:3]])
    did(run("state", "terminal", "mark", str(KEYS[0]), *WHY, cwd=book))
    assert progress(book) == ("open", 0, 9, 0, 1)
    dry = did(run("backfill", "retry", "autumn", *WHY, "--dry-run", "--format", "json", cwd=book))
    assert dry.json["partitions"] == [str(each) for each in KEYS[:3]]
    assert "3 partitions would be taken up again." in dry.said
    did(run("backfill", "retry", "autumn", *WHY, cwd=book))
    assert progress(book) == ("open", 0, 10, 0, 0)
    assert len(claim(book)) == 10
    assert "Nothing has failed." in did(run("backfill", "retry", "autumn", *WHY, cwd=book)).said


def test_what_is_accepted_by_hand_counts_too(book: Path) -> None:
    with sealbook.open(book) as opened:
        opened.ledger.judge([accepted(KEYS[0])])
        assert progress(book) == ("open", 0, 10, 0, 0), "it is to be loaded"
        load(opened.ledger)
    assert progress(book) == ("open", 1, 9, 0, 0)


def test_one_that_is_not_there(book: Path) -> None:
    for verb in ("show", "pause", "resume", "cancel", "retry"):
        why = () if verb == "show" else WHY
        ran = did(run("backfill", verb, "spring", *why, cwd=book), 1)
        assert "there is no backfill spring" in ran.said
    check_command("sealbook backfill")


def test_two_at_work_have_two_names(book: Path) -> None:
    other = key("a", DAYS[0], "device_daily")
    ran = did(run("state", "backfill", str(other), "--name", "autumn", *WHY, cwd=book), 1)
    assert "plan 1 is at work under the name autumn" in ran.said
