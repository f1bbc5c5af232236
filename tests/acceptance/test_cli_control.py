"""`sealbook control simulate`: what the configured policy comes to; nothing is written."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import sealbook
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from tests.support.cli import Ran, run
from tests.support.ledger import run_id
from tests.support.statuses import QUERIES, accepted, days, judge, key, rejected, write_status_book

DAYS = days(10)
CUSTOMERS = ("a", "b")
SERIES = len(CUSTOMERS) * len(QUERIES)
FRESH = 3
"""Days that were due at most three days ago."""


def unfetched(customer: str, day: date, error_class: ErrorClass) -> PartitionFailed:
    return PartitionFailed(
        key=key(customer, day),
        run_id=run_id(1),
        attempt="1",
        failed_stage=Stage.EXTRACT,
        error_class=error_class,
        error="no answer",
    )


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Path:
    """A book in which six days of one query and customer are good, and everything else is missing."""
    control = {"sources": {"demo": {"requests_per_day": 40}}}
    folder = write_status_book(
        tmp_path,
        ledger_url,
        customers=CUSTOMERS,
        first_day=DAYS[0],
        freshness={"due": ["0h", "3d"]},
        control=control,
    )
    judge(folder, [*(accepted(key("a", day)) for day in DAYS[:6]), rejected(key("a", DAYS[6]))])
    with sealbook.open(folder) as opened:
        opened.ledger.runs.tell(
            [
                unfetched("b", DAYS[0], ErrorClass.TRANSIENT),
                unfetched("b", DAYS[1], ErrorClass.PERMANENT),
                unfetched("b", DAYS[2], ErrorClass.QUOTA),
            ]
        )
        opened.catch_up()
    return folder


def simulate(book: Path, *options: str) -> Ran:
    ran = run("control", "simulate", *options, cwd=book)
    assert ran.code == 0, ran.err
    return ran


def found(book: Path, *options: str) -> Any:
    return simulate(book, "--format", "json", *options).json


def lanes(view: Any) -> dict[str, Any]:
    return {each["lane"]: each for each in view["lanes"]}


def test_what_is_missing_is_fetched_within_the_budget_and_days_come_and_are_restated(book: Path) -> None:
    view = found(book, "--days", "20", "--transient", "0")
    missing, coming = SERIES * len(DAYS) - 6, SERIES * 20
    assert view["became_good"] == missing + coming - 1, "what failed for good stays parked"
    assert (view["unfinished"], view["terminal"], view["parked"]) == (0, 0, 1)
    of = lanes(view)
    retried = 3  # what failed for a while, was rejected, or was out of quota
    assert (of["fresh"]["requests"], of["retry"]["requests"]) == (coming + SERIES * FRESH, retried)
    assert of["backfill"]["requests"] == missing - SERIES * FRESH - retried - 1
    [budget] = view["budgets"]
    assert budget["requests_in_24_hours"] <= budget["requests_per_day"] == 40
    assert view["requests"] == sum(each["requests"] for each in view["lanes"])


def test_attempts_fail_as_often_as_the_log_says_that_they_did(book: Path) -> None:
    """Of nine attempts at one query, quota aside, one was rejected, one failed for good, one for a while."""
    with sealbook.open(book, read_only=True) as opened:
        [(name, counts)] = opened.ledger.partition_log.attempts().items()
    assert str(name) == "demo/campaign_daily"
    assert (counts.accepted, counts.rejected, counts.total) == (6, 1, 9)
    assert counts.failed == dict.fromkeys({*ErrorClass} - {ErrorClass.PAST_HORIZON}, 1)
    view = found(book, "--days", "20", "--query", "campaign_daily")
    assert view["parked"] > 0
    assert lanes(view)["retry"]["requests"] > 0
    assert found(book, "--days", "20", "--query", "device_daily")["parked"] == 0


def test_rates_can_be_given(book: Path) -> None:
    assert found(book, "--days", "3", "--permanent", "1")["became_good"] == 0


def test_a_part_of_the_book_is_simulated_by_itself(book: Path) -> None:
    view = found(book, "--days", "2", "--customer", "a", "--query", "device_daily", "--transient", "0")
    assert view["became_good"] == len(DAYS) + 2


def test_the_table_names_lanes_and_days(book: Path) -> None:
    ran = simulate(book, "--days", "3", "--transient", "0")
    first, *_ = ran.out.splitlines()
    assert first.startswith("lane      share  requests  waits on average  at most")
    assert "backfill    15%" in ran.out
    assert f"{DAYS[-1] + timedelta(days=1)}" in ran.out
    assert "would become good" in ran.said
    assert "in its busiest 24 hours of 40" in ran.said


def test_nothing_is_written(book: Path) -> None:
    with sealbook.open(book, read_only=True) as opened:
        before = opened.ledger.statuses.lag(), list(opened.ledger.partition_log.feed())
        first = found(book, "--days", "5")
        assert (opened.ledger.statuses.lag(), list(opened.ledger.partition_log.feed())) == before
    again = found(book, "--days", "5")
    assert {**first, "started_at": 0, "ended_at": 0, "lanes": 0} == {
        **again, "started_at": 0, "ended_at": 0, "lanes": 0
    }  # fmt: skip


def test_a_rate_that_is_none_is_wrong_usage(book: Path) -> None:
    ran = run("control", "simulate", "--transient", "0.7", "--rejected", "0.7", cwd=book)
    assert ran.code == 2
    assert "at most 1 together" in ran.said
