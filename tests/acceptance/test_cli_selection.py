"""Every command that chooses partitions refuses the same things in the same words, without starting Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import sealbook
from sealbook.model import PartitionKey, Verdict
from tests.support.books import write_book
from tests.support.cli import Ran, run

COMMANDS = [
    ["run"],
    ["extract"],
    ["validate"],
    ["validate", "--revalidate"],
    ["load"],
    ["load", "--dry-run"],
    ["coverage"],
    ["raw", "list"],
    ["state", "inspect"],
    ["warehouse", "plan"],
    ["warehouse", "pointers"],
    ["warehouse", "records"],
    ["warehouse", "verify"],
]
CONTRACTS = [["contract", "check"], ["contract", "show"]]
"""These know of no days and customers."""

NAMES = [
    (["--source", "nobody"], "no source nobody is configured", "Configured are google_ads;"),
    (["--query", "nothing"], "no query nothing is configured", "Configured are campaign_daily;"),
    (
        ["--query", "campaign_daily", "--query-name", "nothing"],
        "no query nothing is configured",
        "Configured are campaign_daily;",
    ),
]
PARTITIONS = [
    (
        ["--customer", "999-999-9999"],
        "no customer 9999999999 is configured",
        "Configured are 1234567890, 2345678901;",
    ),
    (
        ["--since", "2026-01-02", "--until", "2026-01-01"],
        "the span of days ends before it begins: since 2026-01-02, until 2026-01-01",
        "Give the first day as since and the last one as until.",
    ),
    (
        ["--day", "today", "--until", "2026-01-01"],
        "a day and a span of days are given",
        "Give --day, or --since and --until.",
    ),
    (["--since", "today", "--until", "yesterday"], "the span of days ends before it begins", ""),
    (["--day", "2026-02-30"], "day '2026-02-30' is not valid: expected a calendar day, YYYY-MM-DD", ""),
    (["--source", "Google"], "source 'Google' is not valid", ""),
    (["--customer-id", "a b"], "customer_id 'a b' is not valid", ""),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A book in which there is nothing to do, on a machine where Spark cannot be started."""

    def refuse(_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("sealbook.spark.session.spark_session", refuse)
    write_book(tmp_path)
    return tmp_path


STAGES = ("extract", "validate", "load", "run")
"""The commands that work on what they are given."""


def check_refused(ran: Ran, says: str, remedy: str) -> None:
    assert (ran.code, ran.out) == (2, "")
    assert f"Error: {says}" in ran.said
    assert remedy in ran.said
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(("arguments", "says", "remedy"), NAMES, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("command", [*COMMANDS, *CONTRACTS], ids=" ".join)
def test_an_unknown_name_is_refused_by_all(
    folder: Path, command: list[str], arguments: list[str], says: str, remedy: str
) -> None:
    check_refused(run(*command, *arguments, cwd=folder), says, remedy)


@pytest.mark.parametrize(("arguments", "says", "remedy"), PARTITIONS, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_unknown_customers_and_impossible_days_are_refused_by_all(
    folder: Path, command: list[str], arguments: list[str], says: str, remedy: str
) -> None:
    check_refused(run(*command, *arguments, cwd=folder), says, remedy)


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command != ["coverage"]], ids=" ".join
)
def test_a_key_is_checked_like_a_filter(folder: Path, command: list[str]) -> None:
    known, unknown = (
        f"google_ads/{each}/campaign_daily/2026-01-01" for each in ("123-456-7890", "9999999999")
    )
    if command[0] in STAGES:
        check_refused(
            run(*command, known, unknown, cwd=folder),
            "no customer 9999999999 is configured",
            "Configured are 1234567890, 2345678901;",
        )
    else:  # to look at a partition that nobody knows is no slip (R-STATE-1)
        assert run(*command, known, unknown, cwd=folder).code == 0
    check_refused(run(*command, "google_ads", cwd=folder), "partition key 'google_ads' is not valid", "")
    check_refused(
        run(*command, known, "--source", "google_ads", cwd=folder),
        "partitions are named by key, and chosen by source besides",
        "Give keys or filters, not both.",
    )


@pytest.mark.parametrize("command", [["coverage"], ["contract", "show"]], ids=" ".join)
def test_a_query_may_stand_alone_and_is_refused_in_the_same_words(folder: Path, command: list[str]) -> None:
    check_refused(
        run(*command, "nothing", cwd=folder),
        "no query nothing is configured",
        "Configured are campaign_daily;",
    )
    assert run(*command, "campaign_daily", cwd=folder).code == 0


@pytest.mark.parametrize("command", [["run"], ["extract"]], ids=" ".join)
def test_what_is_fetched_needs_its_days(folder: Path, command: list[str]) -> None:
    says = "there is no telling which days to fetch"
    for arguments in ([], ["--since", "2026-01-01"], ["--until", "2026-01-01"]):
        check_refused(run(*command, *arguments, cwd=folder), says, "Give --since and --until, or --day.")
    with sealbook.open(folder) as book:
        assert book.ledger.run_store.fetch_feed() == [], "no run was opened"


def test_what_was_configured_once_can_be_looked_at(folder: Path) -> None:
    key = PartitionKey.parse("demo/acct_1/clicks/2026-01-01")
    with sealbook.open(folder) as book:
        book.ledger.judge(
            [Verdict.reject(key, book.ledger.open_run(), error_message="bad", validator_version="v")]
        )
    options = ["--source", "demo", "--customer", "acct_1", "--query", "clicks"]
    for arguments in (options, [str(key)]):
        [state] = run("state", "inspect", *arguments, "--format", "json", cwd=folder).json
        assert state["status"] == "failed"


def test_days_may_be_said_in_words(folder: Path) -> None:
    today = datetime.now(UTC).date()
    keys = [
        PartitionKey("google_ads", "1234567890", "campaign_daily", today - timedelta(days=back))
        for back in range(3)
    ]
    with sealbook.open(folder) as book:
        run_id = book.ledger.open_run()
        book.ledger.judge(
            [Verdict.reject(key, run_id, error_message="bad", validator_version="v") for key in keys]
        )

    def days(*arguments: str) -> list[str]:
        rows = run("state", "inspect", *arguments, "--format", "json", cwd=folder).json
        return [row["logical_date"] for row in rows]

    assert days("--day", "today") == [str(today)]
    assert days("--until", "yesterday") == [str(today - timedelta(days=2)), str(today - timedelta(days=1))]
