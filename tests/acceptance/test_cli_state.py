"""`sealbook state inspect` and `state history`, in all their forms."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest

import sealbook
from sealbook.model import Check, PartitionKey, RunId, Severity, Verdict
from tests.support.cli import Ran, run, run_process
from tests.support.validation import rows, seal

RUNS = [f"01J8ZQ6T5N8W3Y2V7R4K9M0X{number:02}" for number in range(3)]
DAYS = [date(2026, 1, 1) + timedelta(days) for days in range(4)]
ACCEPTED = [PartitionKey("google_ads", "1234567890", "campaign_daily", day) for day in DAYS]
REJECTED = PartitionKey("google_ads", "1234567890", "ad_group_daily", DAYS[0])
OTHER = PartitionKey("demo", "acct_1", "campaign_daily", DAYS[1])
STATE_FIELDS = [
    "source",
    "customer_id",
    "query_name",
    "logical_date",
    "status",
    "current_run_id",
    "schema_version",
    "record_count",
    "updated_at",
    "error_message",
    "attempt_count",
]
PASSED = (Check("seal", passed=True), Check("sha256", passed=True))
FAILED = Check("primary_key", passed=False, violations=12, lines=(3, 9), detail="campaign_id is not unique")
WARNED = Check("clicks", passed=False, violations=1, lines=(4,), severity=Severity.WARN)


def accept(key: PartitionKey, run_id: str, checks: tuple[Check, ...] = PASSED) -> Verdict:
    return Verdict.accept(
        key, run_id, schema_version="1", record_count=1200, validator_version="v1", checks=checks
    )


def reject(key: PartitionKey, run_id: str, error_message: str = "primary_key: 12 rows") -> Verdict:
    return Verdict.reject(
        key, run_id, error_message=error_message, validator_version="v1", checks=(*PASSED, FAILED, WARNED)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book with a few judged partitions; no test changes it."""
    path = tmp_path_factory.mktemp("book")
    run("init", cwd=path)
    with sealbook.open(path) as book:
        book.ledger.judge([accept(key, RUNS[0]) for key in (*ACCEPTED, OTHER)])
        book.ledger.judge([reject(REJECTED, RUNS[1]), reject(ACCEPTED[0], RUNS[1])])
        book.ledger.judge([accept(ACCEPTED[0], RUNS[2], (*PASSED, WARNED))])
    return path


def keys_in(ran: Ran) -> list[str]:
    return [
        "/".join(row[field] for field in ("source", "customer_id", "query_name", "logical_date"))
        for row in ran.json
    ]


def test_json_has_the_fields_of_the_contract_and_the_schedule_of_what_is_open(folder: Path) -> None:
    ran = run_process("state", "inspect", "--format", "json", cwd=folder)
    assert ran.code == 0
    found = ran.json
    row = next(row for row in found if row["query_name"] == "ad_group_daily")
    schedule = row["schedule"]
    opened = [row.pop("schedule", None) is not None for row in found]
    assert opened.count(True) == 2, "what was rejected, and what is accepted since and waits to be loaded"
    assert all(list(row) == STATE_FIELDS for row in found)
    assert list(schedule) == [
        "prospect", "lane", "kind", "next_run_at", "why", "tries", "failing_since", "cause", "error",
        "run_id", "stop", "since", "until", "by", "plan_id",
    ]  # fmt: skip
    assert (schedule["lane"], schedule["kind"], schedule["cause"]) == ("retry", "fetch", "rejected")
    assert schedule["why"] == "1 failure in a row, the last rejected"
    assert schedule["next_run_at"] > row["updated_at"]
    assert row["updated_at"].endswith("Z")
    assert {**row, "updated_at": None} == {
        "source": "google_ads",
        "customer_id": "1234567890",
        "query_name": "ad_group_daily",
        "logical_date": "2026-01-01",
        "status": "failed",
        "current_run_id": None,
        "schema_version": None,
        "record_count": None,
        "updated_at": None,
        "error_message": "primary_key: 12 rows",
        "attempt_count": 1,
    }
    assert ran.err == "6 partitions: 5 success, 1 failed, 0 pending\n"


def test_everything_in_key_order(folder: Path) -> None:
    ran = run("state", "inspect", "--format", "json", cwd=folder)
    assert keys_in(ran) == sorted(map(str, (*ACCEPTED, REJECTED, OTHER)))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--source", "demo"], [OTHER]),
        (["--source", "demo", "--source", "google_ads", "--day", "2026-01-02"], [OTHER, ACCEPTED[1]]),
        (
            ["--query", "ad_group_daily", "--query", "campaign_daily", "--until", "2026-01-01"],
            [REJECTED, ACCEPTED[0]],
        ),
        (["--status", "failed", "--status", "pending"], [REJECTED]),
        ([str(REJECTED), str(ACCEPTED[1]), "--status", "success"], [ACCEPTED[1]]),
        (["--customer-id", "acct_1"], [OTHER]),
        (["--customer-id", "123-456-7890", "--query-name", "ad_group_daily"], [REJECTED]),
        (["--query-name", "campaign_daily", "--source", "google_ads"], ACCEPTED),
        (["--since", "2026-01-03"], ACCEPTED[2:]),
        (["--until", "2026-01-01"], [REJECTED, ACCEPTED[0]]),
        (["--since", "2026-01-02", "--until", "2026-01-03", "--source", "google_ads"], ACCEPTED[1:3]),
        (["--status", "failed"], [REJECTED]),
        (["--status", "pending"], []),
        (["--status", "success", "--customer-id", "1234567890"], ACCEPTED),
    ],
)
def test_filters(folder: Path, filters: list[str], expected: list[PartitionKey]) -> None:
    ran = run("state", "inspect", *filters, "--format", "json", cwd=folder)
    assert keys_in(ran) == [str(key) for key in expected]


def test_a_limit_says_how_many_there_are(folder: Path) -> None:
    ran = run("state", "inspect", "--limit", "2", "--format", "json", cwd=folder)
    assert len(ran.json) == 2
    assert "the first of 6" in ran.err


@pytest.mark.parametrize("customer_id", ["1234567890", "123-456-7890"])
def test_a_key_asked_for_by_name_is_pending_when_nobody_judged_it(folder: Path, customer_id: str) -> None:
    """R-STATE-1, and R-KEY-2: the hyphens go at this edge."""
    ran = run(
        "state",
        "inspect",
        f"google_ads/{customer_id}/campaign_daily/2031-01-01",
        "--format",
        "json",
        cwd=folder,
    )
    assert ran.json == [
        {
            **dict.fromkeys(STATE_FIELDS),
            "source": "google_ads",
            "customer_id": "1234567890",
            "query_name": "campaign_daily",
            "logical_date": "2031-01-01",
            "status": "pending",
            "attempt_count": 0,
        }
    ]
    assert ran.err == "1 partition: 0 success, 0 failed, 1 pending\n"
    assert "2031-01-01" not in run("state", "inspect", cwd=folder).out, "asking must not write"


def test_keys_are_shown_in_the_order_given(folder: Path) -> None:
    keys = [str(ACCEPTED[3]), str(OTHER), str(ACCEPTED[0])]
    assert keys_in(run("state", "inspect", *keys, "--format", "json", cwd=folder)) == keys


def test_a_table_that_is_piped_is_plain_and_complete(folder: Path) -> None:
    ran = run_process("state", "inspect", "--until", "2026-01-01", cwd=folder, env={"COLUMNS": "40"})
    heading, failed, accepted = ran.out.splitlines()
    assert heading.split()[:4] == ["partition", "status", "attempts", "records"]
    assert failed.startswith(f"{REJECTED}  failed")
    assert re.search(r"  retry (\d\d-\d\d \d\d:\d\d|now)  ", failed), "when it is tried again"
    assert failed.endswith("primary_key: 12 rows")
    assert accepted.split()[:6] == [str(ACCEPTED[0]), "success", "3", "1200", "1", RUNS[2]]
    assert "\x1b" not in ran.out + ran.err


def test_a_terminal_gets_colour_and_no_more_than_its_width(folder: Path) -> None:
    env = {"FORCE_COLOR": "1", "COLUMNS": "80", "TERM": "xterm-256color"}
    ran = run("state", "inspect", cwd=folder, env=env)
    assert "\x1b[32msuccess" in ran.out
    assert "\x1b[31mfailed" in ran.out
    assert "The terminal is too narrow for: attempts, records" in ran.err


def test_no_colour_where_none_is_wanted(folder: Path) -> None:
    env = {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "200", "TERM": "xterm-256color"}
    assert "\x1b[3" not in run("state", "inspect", cwd=folder, env=env).out


def test_what_comes_from_outside_cannot_disturb_a_terminal(tmp_path: Path) -> None:
    run("init", cwd=tmp_path)
    with sealbook.open(tmp_path) as book:
        book.ledger.judge([reject(OTHER, RUNS[0], "red \x1b[31m and\nbell \x07 [bold]x[/bold]")])
    for form in (["inspect"], ["history", str(OTHER)]):
        out = run("state", *form, cwd=tmp_path).out
        assert r"red \x1b[31m and bell \x07 [bold]x[/bold]" in out
        assert "\x1b" not in out
        assert "\x07" not in out


def test_a_long_list_is_streamed(tmp_path: Path) -> None:
    run("init", cwd=tmp_path)
    days = [date(2020, 1, 1) + timedelta(number) for number in range(1200)]
    with sealbook.open(tmp_path) as book:
        book.ledger.judge([accept(PartitionKey("demo", "a", "q", day), RUNS[0]) for day in days])
    assert len(run("state", "inspect", "--format", "json", cwd=tmp_path).json) == 1200
    lines = run("state", "inspect", cwd=tmp_path).out.splitlines()
    assert len(lines) == 1201, "one heading, however many pages"
    assert len({line.index("success") for line in lines[1:]}) == 1


def test_history_as_json_holds_all_evidence(folder: Path) -> None:
    """R-VER-2."""
    ran = run_process("state", "history", str(ACCEPTED[0]), "--format", "json", cwd=folder)
    assert [row["attempt"] for row in ran.json] == [1, 2, 3]
    assert [row["outcome"] for row in ran.json] == ["accepted", "rejected", "accepted"]
    rejected = {**ran.json[1], "judged_at": None}
    assert rejected == {
        "source": "google_ads",
        "customer_id": "1234567890",
        "query_name": "campaign_daily",
        "logical_date": "2026-01-01",
        "attempt": 2,
        "run_id": RUNS[1],
        "outcome": "rejected",
        "schema_version": None,
        "record_count": None,
        "error_message": "primary_key: 12 rows",
        "validator_version": "v1",
        "checks": [
            check_record("seal", passed=True),
            check_record("sha256", passed=True),
            check_record("primary_key", violations=12, lines=[3, 9], detail="campaign_id is not unique"),
            check_record("clicks", violations=1, lines=[4], severity="warn"),
        ],
        "revalidation_id": None,
        "judged_at": None,
    }


def check_record(name: str, **fields: object) -> dict[str, object]:
    defaults = {"passed": False, "violations": 0, "lines": [], "detail": None, "severity": "error"}
    return {"name": name, **defaults, **fields}


def test_history_can_be_read(folder: Path) -> None:
    """R-VER-2."""
    key = "google_ads/123-456-7890/campaign_daily/2026-01-01"
    ran = run("state", "history", key, cwd=folder, env={"COLUMNS": "40"})  # no terminal: no width either
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert [line.split()[:3] for line in lines if line.startswith("attempt")] == [
        ["attempt", "1", "accepted"],
        ["attempt", "2", "rejected"],
        ["attempt", "3", "accepted"],
    ]
    assert "error primary_key: 12 rows" in lines
    assert "failed primary_key: campaign_id is not unique (12 found, in lines 3, 9, …)" in lines
    assert "warned clicks (1 found, in line 4)" in lines
    assert "passed seal, sha256" in lines
    assert ran.err == f"{ACCEPTED[0]} is success, current run {RUNS[2]}; attempts: 3\n"


def test_a_remark_of_a_check_that_passed_is_shown(folder: Path) -> None:
    """By `state history`, `explain --full` and in JSON; the verdict is what it would be without it."""
    key = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 3, 1))
    check = Check("record_count", passed=True, detail="10,000 rows are whole pages")
    with sealbook.open(folder) as book:
        book.ledger.judge([accept(key, RUNS[0], (check,))])
    assert "remark" in run("state", "history", str(key), cwd=folder).out
    for command in (("state", "history", str(key)), ("explain", str(key), "--full")):
        assert "10,000 rows are whole pages" in run(*command, cwd=folder).out
    [attempt] = run("state", "history", str(key), "--format", "json", cwd=folder).json
    assert (attempt["outcome"], attempt["checks"][0]["detail"]) == ("accepted", check.detail)


def test_history_of_a_partition_that_nobody_judged(folder: Path) -> None:
    """R-STATE-1."""
    key = "google_ads/1234567890/campaign_daily/2031-01-01"
    ran = run("state", "history", key, "--format", "json", cwd=folder)
    assert (ran.code, ran.json) == (0, [])
    assert ran.err == f"{key} is pending; attempts: 0\n"


@pytest.fixture
def rolled(tmp_path: Path) -> Path:
    """A book with two accepted runs of a partition, of which the first is still sealed."""
    run("init", cwd=tmp_path)
    with sealbook.open(tmp_path) as book:
        book.ledger.judge([accept(OTHER, RUNS[0]), accept(OTHER, RUNS[1])])
        seal(Path(book.settings.raw), OTHER, rows(2), RunId(RUNS[0]))
    return tmp_path


def test_rollback(rolled: Path) -> None:
    """R-STATE-9: shown first, then done; its word is kept with who said so."""
    arguments = ("state", "rollback", str(OTHER), "--to", RUNS[0], "--reason", "doubled clicks")
    tried = run(*arguments, "--dry-run", "--format", "json", cwd=rolled)
    assert (tried.code, tried.json[0]["dry_run"]) == (0, True)
    assert "would go from run" in tried.said
    ran = run(*arguments, "--actor", "ann", "--format", "json", cwd=rolled)
    assert ran.code == 0
    assert ran.json == [
        {
            "source": "demo",
            "customer_id": "acct_1",
            "query_name": "campaign_daily",
            "logical_date": "2026-01-02",
            "from_run_id": RUNS[1],
            "to_run_id": RUNS[0],
            "newest_run_id": RUNS[1],
            "is_readable": False,
            "dry_run": False,
        }
    ]
    assert "until `sealbook load` has staged it" in ran.said
    with sealbook.open(rolled) as book:
        assert book.ledger.state(OTHER).current_run_id == RUNS[0]
    again = run(*arguments, cwd=rolled)
    assert again.code == 1
    assert "only to another run" in again.said


def test_a_rollback_to_what_is_not_sealed_is_refused(rolled: Path) -> None:
    """R-STATE-9: the command line knows raw storage."""
    run("state", "rollback", str(OTHER), "--to", RUNS[0], "--reason", "to try it", cwd=rolled)
    ran = run("state", "rollback", str(OTHER), "--to", RUNS[1], "--reason", "to undo it", cwd=rolled)
    assert ran.code == 1
    assert f"run {RUNS[1]} is not sealed in raw storage" in ran.said
    assert "sealbook raw list" in ran.said
