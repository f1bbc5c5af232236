"""`sealbook status alerts`: looking sends nothing; sending tells each once, whatever happens in between."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import sealbook
from sealbook.ledger import open_ledger
from sealbook.model import PartitionKey, RunEvent
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.plans import PlanKind, PlanRequest
from sealbook.model.selection import Selection
from tests.support.cli import SEALBOOK, run
from tests.support.commands import check_command
from tests.support.ledger import let_leases_run_out, run_id
from tests.support.receivers import AlertServer
from tests.support.statuses import QUERIES, accepted, days, judge, key, rejected, write_status_book, yesterday

DAY = yesterday()
ALL = [key("a", DAY, query) for query in QUERIES]
LATE = {"due": ["0h"]}


@pytest.fixture
def server() -> AlertServer:
    return AlertServer()


@pytest.fixture
def book(tmp_path: Path, ledger_url: str, server: AlertServer) -> Path:
    """A book of three partitions, all of which are late."""
    with server.up():
        pass  # from now on it has a port
    alerts = {"url": server.url}
    return write_status_book(
        tmp_path, ledger_url, customers="a", first_day=DAY, freshness=LATE, alerts=alerts
    )


def told(server: AlertServer) -> list[tuple[str, str, str]]:
    return [(each["state"], each["kind"], each["subject"]) for each in server.notices]


def test_looking_lists_what_is_wrong_and_sends_nothing(book: Path, server: AlertServer) -> None:
    with server.up():
        ran = run("status", "alerts", cwd=book)
        assert ran.code == 3
        for each in ALL:
            assert f"late  {each} was never published by its deadline" in ran.out
            assert f"sealbook explain {each}" in ran.out
        assert ran.said == "3 alerts. Nothing was sent: --send does. "
        found = run("status", "alerts", "--query", "device_daily", "--format", "json", cwd=book)
    assert found.code == 3
    [alert] = found.json
    assert list(alert) == ["kind", "subject", "since", "message", "command"]
    check_command(alert["command"])
    assert server.batches == []


def test_nothing_is_wrong(book: Path) -> None:
    judge(book, map(accepted, ALL))
    ran = run("status", "alerts", cwd=book)
    assert (ran.code, ran.out, ran.said) == (0, "", "0 alerts. ")


def test_what_was_attempted_in_vain_is_late_too(book: Path) -> None:
    judge(book, [rejected(ALL[0]), accepted(ALL[1]), accepted(ALL[2])])
    found = run("status", "alerts", "--format", "json", cwd=book).json
    assert [(each["kind"], each["subject"]) for each in found] == [("late", str(ALL[0]))]


def test_each_is_sent_once_and_once_more_when_it_is_over(book: Path, server: AlertServer) -> None:
    with server.up():
        for said in ("3 notices sent.", "0 notices sent."):
            ran = run("status", "alerts", "--send", cwd=book)
            assert (ran.code, ran.said) == (3, f"3 alerts. {said} ")
        assert told(server) == [("raised", "late", str(each)) for each in ALL]
        assert len(server.batches) == 1, "one call for all of them"
        judge(book, map(accepted, ALL))
        ran = run("status", "alerts", "--send", cwd=book)
        assert (ran.code, ran.said) == (0, "0 alerts. 3 notices sent. ")
        assert told(server)[3:] == [("resolved", "late", str(each)) for each in ALL]
        judge(book, [rejected(ALL[0], again="x")])
        run("status", "alerts", "--send", cwd=book)
        assert told(server)[6:] == [("raised", "withdrawn", str(ALL[0]))]
    ids = [each["id"] for each in server.notices]
    assert len(set(ids)) == len(ids)
    assert {each.partition("/")[0] for each in ids[:3]} == {each.partition("/")[0] for each in ids[3:6]}


def test_nothing_is_lost_while_the_receiver_is_down(book: Path, server: AlertServer) -> None:
    ran = run("status", "alerts", "--send", cwd=book)
    assert ran.code == 1
    assert "did not answer" in ran.said
    assert "is kept" in ran.said
    judge(book, map(accepted, ALL[:1]))
    server.code = 503
    with server.up():
        assert "answered 503" in run("status", "alerts", "--send", cwd=book).said
        refused, server.batches, server.code = server.batches, [], 200
        assert run("status", "alerts", "--send", cwd=book).code == 3
    assert server.batches == refused
    assert told(server) == [
        *(("raised", "late", str(each)) for each in ALL),
        ("resolved", "late", str(ALL[0])),
    ], "in the order in which it happened, though the first is over by now"


def test_a_command_is_told_again_until_it_takes_them(book: Path) -> None:
    settings = yaml.safe_load((book / "sealbook.yaml").read_text())
    code = (
        "import pathlib, sys; pathlib.Path('taken').write_text(sys.stdin.read()); sys.exit(int(sys.argv[1]))"
    )
    for exit_code, expected in (("4", 1), ("0", 3)):
        settings["alerts"] = {"command": [sys.executable, "-c", code, exit_code]}
        (book / "sealbook.yaml").write_text(yaml.safe_dump(settings))
        assert run("status", "alerts", "--send", cwd=book).code == expected
        notices: list[dict[str, Any]] = json.loads((book / "taken").read_text())
        assert [each["subject"] for each in notices] == [str(each) for each in ALL]
    assert run("status", "alerts", "--send", cwd=book).said == "3 alerts. 0 notices sent. "


def test_one_that_was_killed_after_the_post_is_told_again_under_the_same_ids(
    book: Path, server: AlertServer, ledger_url: str
) -> None:
    """The receiver has it, and the ledger does not know: better twice, and known by its id, than never."""
    server.may_answer.clear()
    with server.up():
        killed = subprocess.Popen([SEALBOOK, "status", "alerts", "--send"], cwd=book, stderr=subprocess.PIPE)
        assert server.has_one.wait(60)
        second = run("status", "alerts", "--send", cwd=book)
        assert (second.code, len(server.batches)) == (1, 1), "two at once do not send twice"
        assert "another is sending alerts" in second.said
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        server.may_answer.set()
        let_leases_run_out(ledger_url)
        assert run("status", "alerts", "--send", cwd=book).code == 3
        assert run("status", "alerts", "--send", cwd=book).said == "3 alerts. 0 notices sent. "
    first, again = server.batches
    assert first == again


def test_an_outage_of_thousands_is_a_few_calls(tmp_path: Path, ledger_url: str, server: AlertServer) -> None:
    with server.up():
        customers = [f"c{number:03}" for number in range(400)]
        write_status_book(
            tmp_path, ledger_url, customers=customers, first_day=DAY, freshness=LATE,
            alerts={"url": server.url},
        )  # fmt: skip
        assert run("status", "alerts", "--send", cwd=tmp_path).said == "1,200 alerts. 1,200 notices sent. "
    assert [len(batch) for batch in server.batches] == [1000, 200]


@pytest.mark.parametrize(
    ("error_class", "kind", "says"),
    [
        (ErrorClass.TRANSIENT, "terminal", "is given up: 1 failure in a row, which is max_attempts"),
        (
            ErrorClass.PERMANENT,
            "parked",
            "is parked: it fails until an operator or the configuration changes",
        ),
    ],
)
def test_what_has_stopped_is_told_once_and_once_more_when_it_is_taken_up_again(
    tmp_path: Path, ledger_url: str, server: AlertServer, error_class: ErrorClass, kind: str, says: str
) -> None:
    """R-CTL-5: of this book's partitions that it still expects, and of nobody else's."""
    stopped, other = ALL[0], key("zz", DAY)
    with server.up():
        book = write_status_book(
            tmp_path, ledger_url, customers="a", first_day=DAY, alerts={"url": server.url},
            control={"retries": {"max_attempts": 1}},
        )  # fmt: skip
        with sealbook.open(book) as opened:
            opened.ledger.runs.tell([failed(stopped, error_class), failed(other, error_class)])
        ran = run("status", "alerts", "--send", "--format", "json", cwd=book)
        assert ran.code == 3
        [alert] = ran.json
        assert (alert["kind"], alert["subject"]) == (kind, str(stopped))
        assert f"{stopped} {says}" in alert["message"]
        assert alert["since"] is not None
        check_command(alert["command"])
        assert run("status", "alerts", "--send", cwd=book).said == "1 alert. 0 notices sent. "
        with sealbook.open(book) as opened:
            request = PlanRequest(PlanKind.CLEAR, Selection(keys=[stopped]))
            plan = opened.ledger.plans.preview(request, actor="ann", reason="the account is back").plan
            opened.ledger.plans.carry_out(plan.id)
        assert run("status", "alerts", "--send", cwd=book).said == "0 alerts. 1 notice sent. "
    assert told(server) == [("raised", kind, str(stopped)), ("resolved", kind, str(stopped))]


def failed(partition: PartitionKey, error_class: ErrorClass) -> PartitionFailed:
    return PartitionFailed(
        key=partition, run_id=run_id(1), attempt="1", failed_stage=Stage.EXTRACT, error_class=error_class,
        error="no answer",
    )  # fmt: skip


def test_a_projection_that_lags(book: Path, ledger_url: str, server: AlertServer) -> None:
    """R-EVT-9. It is measured before the command itself catches up."""
    judge(book, map(accepted, ALL))
    old = datetime.now(UTC) - timedelta(hours=1)
    with open_ledger(ledger_url, clock=lambda: old) as ledger:
        ledger.run_store.append_event(RunEvent.new(run_id(9), "RunStarted"))
    with server.up():
        ran = run("status", "alerts", "--send", cwd=book)
        assert ran.code == 3
        assert "PROJECTOR_LAG_HIGH  projection runs is 36" in ran.out
        assert "sealbook project --follow" in ran.out
        assert run("status", "alerts", "--send", cwd=book).code == 0
    assert {each[:2] for each in told(server)} == {
        ("raised", "PROJECTOR_LAG_HIGH"), ("resolved", "PROJECTOR_LAG_HIGH"),
    }  # fmt: skip


def test_nobody_is_configured(tmp_path: Path, ledger_url: str) -> None:
    write_status_book(tmp_path, ledger_url)
    ran = run("status", "alerts", "--send", cwd=tmp_path)
    assert ran.code == 2
    assert "nobody is configured to be told of alerts" in ran.said


def test_a_part_of_the_alerts_is_not_sent(book: Path) -> None:
    """Else the others would seem to be over."""
    ran = run("status", "alerts", "--send", "--customer", "a", cwd=book)
    assert ran.code == 2
    assert "all alerts are sent, or none" in ran.said


def test_books_of_other_tenants_are_not_told(book: Path, server: AlertServer, ledger_url: str) -> None:
    other = book / "other"
    other.mkdir()
    write_status_book(
        other, ledger_url, customers="b", first_day=days(1)[0], freshness=LATE, tenant="other",
        alerts={"url": server.url},
    )  # fmt: skip
    with server.up():
        run("status", "alerts", "--send", cwd=book)
        run("status", "alerts", "--send", cwd=other)
        run("status", "alerts", "--send", cwd=book)
    assert [(state, subject.split("/")[1]) for state, _, subject in told(server)] == [
        *[("raised", "a")] * 3,
        *[("raised", "b")] * 3,
    ]


def test_the_same_from_python(book: Path) -> None:
    with sealbook.open(book) as opened:
        assert [each.subject for each in opened.alerts()] == [str(each) for each in ALL]
