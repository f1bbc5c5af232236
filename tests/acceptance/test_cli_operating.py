"""`sealbook state retry|reprocess|backfill|terminal`: shown first, confirmed where it is much, logged.

R-CTL-3, R-CTL-5, R-CTL-8, R-CTL-11, as a user types them, on each database.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import sealbook
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.work.rows import OpenWork
from sealbook.model import PartitionKey, Status
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.retry import Stop
from sealbook.model.work import Lane, WorkKind
from tests.support.cli import Ran, answer, run
from tests.support.commands import check_command
from tests.support.ledger import run_id
from tests.support.statuses import accepted, days, judge, key, rejected, write_status_book
from tests.support.validation import rows, seal

DAYS = days(30)
GOOD, FAILED, UNSEALED, NEVER = (key("a", day) for day in DAYS[:4])
WHY = ("--reason", "the source was wrong", "--actor", "ann")
SPAN = ("--since", str(DAYS[0]), "--until", str(DAYS[-1]), "--query", "campaign_daily")


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Path:
    """A good day, a rejected one, and a rejected one whose raw run is gone."""
    control = {"sources": {"demo": {"requests_per_day": 40}}}
    folder = write_status_book(tmp_path, ledger_url, customers=("a", "b"), first_day=DAYS[0], control=control)
    for each in (GOOD, FAILED):
        seal(folder / "raw", each, rows(1), run_id(1))
    judge(folder, [accepted(GOOD), rejected(FAILED), rejected(UNSEALED)])
    return folder


def status(book: Path, partition: PartitionKey) -> Status:
    with sealbook.open(book) as opened:
        return opened.ledger.state(partition).status


def work(book: Path, partition: PartitionKey) -> OpenWork | None:
    with sealbook.open(book) as opened:
        return opened.ledger.reader.schedule.work(partition)


def logged(book: Path) -> list[tuple[str, str, str, int]]:
    with sealbook.open(book) as opened:
        entries = list(opened.ledger.reader.override_log.entries())
    return [(each.action, each.actor, each.reason, len(each.keys)) for each in reversed(entries)]


def did(ran: Ran, code: int = 0) -> Ran:
    assert ran.code == code, ran.err
    return ran


def test_a_failed_partition_is_tried_again(book: Path) -> None:
    """R-CTL-3: failed → pending by hand, with who, when, why and what in the log of overrides."""
    ran = did(run("state", "retry", str(FAILED), *WHY, cwd=book))
    assert f"{FAILED}  failed after 1 attempt" in ran.out
    assert "Plan 1: retry of 1 partition." in ran.said
    assert "1 partition is pending again" in ran.said
    assert status(book, FAILED) is Status.PENDING
    found = work(book, FAILED)
    assert found is not None
    assert (found.work.kind, found.work.run_id) == (WorkKind.JUDGE, run_id(1))
    assert logged(book) == [("requeue", "ann", "the source was wrong", 1)]


def test_what_cannot_be_retried_says_why_and_what_to_do(book: Path) -> None:
    """R-CTL-8: each failure of a batch is reported, and the exit code is 3 if some were done."""
    ran = did(run("state", "retry", *map(str, (GOOD, FAILED, UNSEALED, NEVER)), *WHY, cwd=book), 3)
    assert f"{GOOD} is refused: it is good, and has not failed." in ran.said
    assert f"{UNSEALED} is refused: no run of it is sealed any more." in ran.said
    assert f"{NEVER} is refused: no run of it was ever sealed." in ran.said
    assert f"To fetch it: sealbook state backfill {NEVER} --reason '…'" in ran.said
    assert [status(book, each) for each in (FAILED, UNSEALED)] == [Status.PENDING, Status.FAILED]
    assert logged(book) == [("requeue", "ann", "the source was wrong", 1)]


@pytest.mark.parametrize(
    ("command", "partition"),
    [("retry", GOOD), ("retry", UNSEALED), ("retry", NEVER), ("reprocess", NEVER)],
)
def test_if_all_is_refused_nothing_is_done_and_the_way_out_is_a_command(
    book: Path, command: str, partition: PartitionKey
) -> None:
    ran = did(run("state", command, str(partition), *WHY, "--format", "json", cwd=book), 1)
    assert (ran.json["carried_out"], ran.json["items"]) == (False, [])
    [refused] = ran.json["refused"]
    assert refused["logical_date"] == str(partition.logical_date)
    check_command(refused["remedy"].partition(": ")[2])
    assert logged(book) == []


@pytest.mark.parametrize("command", ["retry", "reprocess", "terminal mark", "terminal clear"])
def test_everything_at_once_is_refused(book: Path, command: str) -> None:
    ran = did(run("state", *command.split(), *WHY, cwd=book), 2)
    assert "of everything is refused" in ran.said
    assert "Choose partitions by key" in ran.said


@pytest.mark.parametrize("command", ["retry", "reprocess", "backfill", "terminal mark", "terminal clear"])
def test_it_has_to_be_said_why(book: Path, command: str) -> None:
    ran = did(run("state", *command.split(), str(FAILED), cwd=book), 2)
    assert "it has to be said why" in ran.said
    assert "Give --reason" in ran.said


def test_a_filter_that_finds_nothing_is_no_failure(book: Path) -> None:
    ran = did(run("state", "retry", "--customer", "b", *WHY, cwd=book))
    assert "There is nothing to do." in ran.said


def test_a_dry_run_shows_the_plan_and_its_id_carries_it_out(book: Path) -> None:
    """R-CTL-11. Who carries it out is who is logged."""
    shown = did(run("state", "retry", str(FAILED), *WHY, "--dry-run", "--format", "json", cwd=book))
    assert (shown.json["carried_out"], shown.json["partitions"]) == (False, 1)
    assert [each["partition"] for each in shown.json["items"]] == [str(FAILED)]
    assert (status(book, FAILED), logged(book)) == (Status.FAILED, [])
    assert f"sealbook state retry --plan {shown.json['plan_id']}" in shown.said
    done = did(run("state", "retry", "--plan", "1", "--actor", "bob", "--format", "json", cwd=book))
    assert done.json["carried_out"] is True
    assert logged(book) == [("requeue", "bob", "the source was wrong", 1)]


def test_a_world_that_moved_is_refused_with_the_difference(book: Path) -> None:
    did(run("state", "retry", str(FAILED), *WHY, "--dry-run", cwd=book))
    judge(book, [accepted(FAILED, 2)])
    ran = did(run("state", "retry", "--plan", "1", cwd=book), 1)
    assert f"{FAILED}: was failed after 1 attempt, open under fence 0; is no part of it" in ran.said
    assert "Preview it again" in ran.said
    assert (status(book, FAILED), logged(book)) == (Status.SUCCESS, [])


def test_a_plan_is_carried_out_by_its_own_command_alone_and_once(book: Path) -> None:
    did(run("state", "retry", str(FAILED), *WHY, "--dry-run", cwd=book))
    ran = did(run("state", "reprocess", "--plan", "1", cwd=book), 2)
    assert "plan 1 is a retry" in ran.said
    assert "sealbook state retry --plan 1" in ran.said
    assert "Give --plan alone" in did(run("state", "retry", "--plan", "1", str(GOOD), cwd=book), 2).said
    did(run("state", "retry", "--plan", "1", cwd=book))
    ran = did(run("state", "retry", "--plan", "1", cwd=book), 1)
    assert "plan 1 is done, not previewed" in ran.said
    assert "there is no plan 7" in did(run("state", "retry", "--plan", "7", cwd=book), 1).said


def test_more_than_twenty_need_a_yes_where_nobody_can_be_asked(book: Path) -> None:
    """R-CTL-8. What was previewed is kept: the command that is named carries it out."""
    ran = did(run("state", "backfill", *SPAN, *WHY, cwd=book), 2)
    assert "that are 59 partitions" in ran.said
    assert "If it is meant: sealbook state backfill --plan 1 --yes" in ran.said
    assert (work(book, NEVER), logged(book)) == (None, [])
    did(run("state", "backfill", "--plan", "1", "--yes", cwd=book))
    assert work(book, NEVER) is not None


@pytest.mark.parametrize("flag", ["--yes", "--force"])
def test_twenty_failed_ones_are_retried_at_once_and_more_by_a_flag(book: Path, flag: str) -> None:
    partitions = [key("b", day) for day in DAYS[:21]]
    for each in partitions:
        seal(book / "raw", each, rows(1), run_id(1))
    judge(book, [rejected(each) for each in partitions])
    did(run("state", "retry", *map(str, partitions[:20]), *WHY, "--dry-run", cwd=book))
    did(run("state", "retry", "--customer", "b", *WHY, cwd=book), 2)
    did(run("state", "retry", "--customer", "b", *WHY, flag, cwd=book))
    assert {status(book, each) for each in partitions} == {Status.PENDING}
    did(run("state", "retry", "--plan", "1", cwd=book), 1)


def test_at_a_terminal_the_number_is_typed(book: Path) -> None:
    code, shown = answer(book, "60", "state", "backfill", *SPAN, *WHY)
    assert code == 1
    assert "Type 59 to go on" in shown
    assert "Nothing was done. To do it later: sealbook state backfill --plan 1 --yes" in shown
    assert work(book, NEVER) is None
    code, shown = answer(book, "59", "state", "backfill", *SPAN, *WHY)
    assert code == 0, shown
    assert work(book, NEVER) is not None


def test_reprocessing_a_good_day_leaves_it_readable(book: Path) -> None:
    did(run("state", "reprocess", str(GOOD), *WHY, cwd=book))
    found = work(book, GOOD)
    assert found is not None
    assert (found.work.lane, found.work.kind) == (Lane.REFRESH, WorkKind.FETCH)
    assert status(book, GOOD) is Status.SUCCESS
    with sealbook.open(book, read_only=True) as opened:
        [covered] = opened.coverage("campaign_daily", customers="a", since=DAYS[0], until=DAYS[0])
    assert covered.kind == "published"


def test_a_backfill_shows_size_cost_and_time_and_what_it_leaves_out(book: Path) -> None:
    ran = did(run("state", "backfill", *SPAN[:2], "--until", "2099-12-31", *SPAN[4:], *WHY, "--dry-run",
                  "--format", "json", cwd=book))  # fmt: skip
    shown = ran.json
    assert (shown["partitions"], shown["requests"]) == (59, 59)
    assert (shown["left_out"]["good"], shown["left_out"]["open"]) == (1, 0)
    assert shown["left_out"]["not_over"] > 50_000
    assert shown["budgets"] == [{"source": "demo", "requests": 59, "requests_per_day": 40, "share": 0.15}]
    assert "1 partition is good: --force fetches them again" in ran.said
    assert "59 requests of 40 a day, of which 15% are for backfills: 9d 20h if nothing is lent" in ran.said


def test_a_backfill_again_does_nothing_and_with_force_redoes_what_is_good(book: Path) -> None:
    did(run("state", "backfill", *SPAN, *WHY, "--name", "autumn", "--yes", cwd=book))
    again = did(run("state", "backfill", *SPAN, *WHY, "--name", "autumn", "--yes", cwd=book))
    assert "There is nothing to do." in again.said
    forced = did(run("state", "backfill", *SPAN, *WHY, "--force", "--format", "json", cwd=book))
    assert [each["partition"] for each in forced.json["items"]] == [str(GOOD)]
    found = work(book, GOOD)
    assert found is not None
    assert found.work.lane is Lane.BACKFILL


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "there is no telling which days to backfill"),
        (("--since", "2026-01-01"), "there is no telling which days to backfill"),
        (("--day", "2000-01-01"), "no account that is chosen has such a day"),
        (("--day", "2026-01-01", "--customer", "zz"), "no customer zz is configured"),
        (("--day", "yesterday", "--name", "Q1"), "name 'Q1' is not valid"),
    ],
)
def test_what_is_no_backfill(book: Path, arguments: tuple[str, ...], said: str) -> None:
    assert said in did(run("state", "backfill", *arguments, *WHY, cwd=book), 2).said


def unfetched(book: Path, error_class: ErrorClass) -> None:
    told = PartitionFailed(
        key=NEVER,
        run_id=run_id(1),
        attempt="1",
        failed_stage=Stage.EXTRACT,
        error_class=error_class,
        error="the account is disabled",
    )
    with sealbook.open(book) as opened:
        opened.ledger.runs.tell([told])


def test_a_day_whose_next_try_is_hours_away_is_fetched_now(book: Path) -> None:
    """R-CTL-8: no run of it was sealed, so it is a backfill and no retry."""
    unfetched(book, ErrorClass.TRANSIENT)
    before = work(book, NEVER)
    assert before is not None
    assert before.work.ready_at > datetime.now(UTC)
    did(run("state", "backfill", str(NEVER), *WHY, cwd=book))
    found = work(book, NEVER)
    assert found is not None
    assert (found.work.ready_at <= datetime.now(UTC), found.work.tries) == (True, 0)


def test_what_is_parked_is_listed_and_cleared(book: Path) -> None:
    """R-CTL-5."""
    unfetched(book, ErrorClass.PERMANENT)
    listed = did(run("state", "terminal", "list", "--format", "json", cwd=book))
    [row] = listed.json
    assert (row["customer_id"], row["kind"], row["stop"], row["error"]) == (
        "a", "parked", "permanent", "the account is disabled"
    )  # fmt: skip
    retried = did(run("state", "retry", str(NEVER), *WHY, cwd=book), 1)
    assert f"sealbook state terminal clear {NEVER} --reason '…'" in retried.said
    left_out = did(run("state", "backfill", str(NEVER), *WHY, cwd=book))
    assert "1 partition is given up or parked: sealbook state terminal list" in left_out.said
    did(run("state", "terminal", "clear", str(NEVER), *WHY, cwd=book))
    assert did(run("state", "terminal", "list", "--format", "json", cwd=book)).json == []
    assert logged(book) == [("clear", "ann", "the source was wrong", 1)]


def test_what_failed_is_given_up_and_stays_failed(book: Path) -> None:
    """R-STATE-8: terminal is no status."""
    with sealbook.open(book) as opened:
        claims = opened.ledger.scheduler.claim("bob", Terms(["demo"]), limit=9, lease=timedelta(hours=9))
        assert len(claims) == 0, "what failed waits"
    ran = did(run("state", "terminal", "mark", str(FAILED), str(GOOD), *WHY, cwd=book), 3)
    assert f"{GOOD} is refused: nothing is open of it, and it has not failed." in ran.said
    found = work(book, FAILED)
    assert found is not None
    assert (found.work.stop, found.stopped_by) == (Stop.MANUAL, "ann")
    assert status(book, FAILED) is Status.FAILED
    listed = did(run("state", "terminal", "list", cwd=book))
    assert f"{FAILED}  terminal  the source was wrong" in listed.out
    assert "1 partition: 1 terminal, 0 parked" in listed.said
    again = did(run("state", "terminal", "mark", str(FAILED), *WHY, cwd=book), 1)
    assert "it is given up already" in again.said
