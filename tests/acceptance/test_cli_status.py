"""`sealbook status`: the board, the grid and the lists, as a person and as a program sees them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

import sealbook
from sealbook.ledger import open_ledger
from sealbook.ledger.schedule.pauses import Scope
from sealbook.model import RunEvent
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.selection import Selection
from tests.support.cli import SEALBOOK, Ran, run, run_process
from tests.support.commands import check_command
from tests.support.ledger import run_id
from tests.support.statuses import QUERIES, accepted, days, judge, key, rejected, write_status_book

DAYS = days(7)
GOOD = [key(customer, day) for customer in "abc" for day in DAYS]
FAILED, KEPT, WITHDRAWN, UNFETCHED, MISSING = (
    key("b", DAYS[4]), key("a", DAYS[6]), key("c", DAYS[0]), key("b", DAYS[1]), key("a", DAYS[2]),
)  # fmt: skip
KEYS = ("source", "customer_id", "query_name", "logical_date")


@pytest.fixture(scope="module")
def made() -> dict[str, Path]:
    return {}


@pytest.fixture
def book(
    made: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    ledger_url: str,
) -> Path:
    """A book with one partition of every kind; no test changes it."""
    backend = ledger_url.partition(":")[0]
    if backend not in made:
        made[backend] = write_status_book(tmp_path_factory.mktemp("book"), ledger_url, first_day=DAYS[0])
        published = [each for each in GOOD if each not in (FAILED, UNFETCHED, MISSING)]
        judge(made[backend], [*map(accepted, published), rejected(FAILED)])
        judge(made[backend], [rejected(KEPT, 2), rejected(WITHDRAWN, 1, again="x")])
        with sealbook.open(made[backend]) as opened:
            opened.ledger.runs.tell(
                [
                    PartitionFailed(
                        key=UNFETCHED, run_id=run_id(1), attempt="1", failed_stage=Stage.EXTRACT,
                        error_class=ErrorClass.TRANSIENT, error="no answer",
                    )
                ]
            )  # fmt: skip
    return made[backend]


def show(book: Path, *options: str, width: int = 80, colour: bool = False) -> Ran:
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"} if colour else {}
    return run("status", *options, cwd=book, env={"COLUMNS": str(width), **terminal})


def keys_in(ran: Ran) -> list[str]:
    return ["/".join(row[name] for name in KEYS) for row in ran.json]


CAMPAIGNS = ("--query", "campaign_daily")


def test_the_board_in_eighty_columns(book: Path) -> None:
    ran = show(book, *CAMPAIGNS)
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    lines = ran.out.splitlines()
    assert lines[0].split() == ["not", "newest"]
    assert len(lines[0]) == len(lines[1]), "the two lines of headings end together"
    assert lines[1].split() == [
        "query", "due", "readable", "behind", "failed", "fetched", "late", "missing", "day",
    ]  # fmt: skip
    newest = f"{DAYS[-1]:%m-%d}" if DAYS[-1].year == datetime.now(UTC).year else str(DAYS[-1])
    assert lines[2].split() == ["campaign_daily", "21", "17", "0", "3", "1", "0", "1", newest]
    assert "1 withdrawn" not in ran.out
    assert re.search(r"^since .*: 17 first published$", ran.out, re.MULTILINE)
    rows = {line.split()[0]: line.split()[1:] for line in lines if line[:1] in "abc" and line[1:2] == " "}
    assert list(rows) == ["c", "b", "a"], "the worst first: withdrawn, then failed"
    assert rows["c"] == list("W■■■■■■")
    assert rows["b"] == list("■x■■x■■")
    assert rows["a"] == list("■■·■■■F")
    assert lines[-2].startswith("W withdrawn  x failed  F last attempt failed, earlier run readable")
    assert (ran.out + ran.err).count("\x1b") == 0


def test_names_that_leave_no_room_for_figures_stand_above_them(tmp_path: Path, ledger_url: str) -> None:
    other = {"queries": "other_source.yaml", "customers": ["a"]}
    book = write_status_book(tmp_path, ledger_url, first_day=DAYS[0])
    settings = yaml.safe_load((book / "sealbook.yaml").read_text())
    settings["sources"]["other_source"] = other
    (book / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    catalogue = (book / "demo.yaml").read_text().replace("source: demo", "source: other_source")
    (book / "other_source.yaml").write_text(catalogue)
    lines = show(book).out.splitlines()
    assert max(map(len, lines)) <= 80
    name = lines.index("demo/campaign_daily")
    assert lines[name + 1].split() == ["21", "0", "0", "0", "0", "0", "21", "none"]


def test_a_wide_board_has_one_line_of_headings(book: Path) -> None:
    lines = show(book, width=140).out.splitlines()
    assert lines[0].split("  ")[0] == "query"
    assert "not fetched" in lines[0]
    assert lines[4].split()[:2] == ["all", "63"]


def test_in_colour_it_says_the_same(book: Path) -> None:
    coloured = show(book, *CAMPAIGNS, colour=True).out
    assert "\x1b[1;31mW" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == show(book, *CAMPAIGNS).out


def test_days_that_do_not_fit_are_weeks(tmp_path: Path, ledger_url: str) -> None:
    """A bin shows its worst."""
    first = days(200)[0]
    write_status_book(tmp_path, ledger_url, customers=["a"], first_day=first)
    judge(tmp_path, [accepted(key("a", day)) for day in days(200)])
    ran = show(tmp_path, *CAMPAIGNS)
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "Each column is a week, and shows the worst of its days; --since narrows." in ran.out
    assert "Each column" not in show(tmp_path, *CAMPAIGNS, "--since", str(days(30)[0])).out


def test_many_customers_are_the_worst_of_them(tmp_path: Path, ledger_url: str) -> None:
    customers = [f"c{number:02}" for number in range(30)]
    write_status_book(tmp_path, ledger_url, customers=customers, first_day=DAYS[-1])
    judge(tmp_path, [rejected(key("c29", DAYS[-1])), accepted(key("c28", DAYS[-1]))])
    ran = show(tmp_path, *CAMPAIGNS)
    rows = [line.split() for line in ran.out.splitlines() if re.match(r"c\d\d ", line)]
    assert rows[0] == ["c29", "x"]
    assert len(rows) == 20
    assert "c28" not in ran.out, "it is good"
    assert "10 rows more, none of them worse" in ran.out


def test_customers_without_a_fault_are_one_line(tmp_path: Path, ledger_url: str) -> None:
    customers = [f"c{number}" for number in range(6)]
    write_status_book(tmp_path, ledger_url, customers=customers, first_day=DAYS[-2])
    judge(tmp_path, [accepted(key(each, day)) for each in customers for day in DAYS[-2:]])
    judge(tmp_path, [rejected(key("c3", DAYS[-1]), 2)])
    lines = show(tmp_path, *CAMPAIGNS).out.splitlines()
    assert "c3              ■ F" in lines
    assert "5 good          ■ ■" in lines


def test_the_board_as_json_is_one_object_whose_counts_add_up(book: Path) -> None:
    board = run_process("status", "--format", "json", cwd=book).json
    assert list(board) == [
        "now", "queries", "total", "displays", "availabilities", "stale_reasons",
        "runs", "schedule", "changes", "grid", "lag",
    ]  # fmt: skip
    assert [each["query_name"] for each in board["queries"]] == list(QUERIES)
    assert board["total"]["due"] == sum(each["due"] for each in board["queries"]) == 63
    assert sum(board["displays"].values()) == sum(board["availabilities"].values()) == 63
    assert board["displays"]["Withdrawn"] == 1
    grid = board["grid"]
    assert grid["step"] == "day"
    assert len(grid["rows"]) == 9
    assert all(len(row["cells"]) == len(grid["columns"]) == 7 for row in grid["rows"])
    [row] = [
        each for each in grid["rows"] if (each["customer_id"], each["query_name"]) == ("b", "campaign_daily")
    ]
    assert row["counts"] == {"failed": 2, "materialized": 5}
    assert grid["letters"]["W"] == "withdrawn"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--attention", *CAMPAIGNS], [WITHDRAWN, UNFETCHED, FAILED, KEPT, MISSING]),
        (["--failed"], [WITHDRAWN, UNFETCHED, FAILED, KEPT]),
        (["--missing", *CAMPAIGNS], [MISSING]),
        (["--stale"], []),
        (["--failed", "--missing", *CAMPAIGNS, "--customer", "b"], [UNFETCHED, FAILED]),
    ],
)
def test_lists_are_worst_first(book: Path, options: list[str], expected: list[object]) -> None:
    assert keys_in(show(book, *options, "--format", "json")) == [str(each) for each in expected]


def test_lists_go_on_by_key(book: Path) -> None:
    found: list[str] = []
    after: list[str] = []
    while True:
        ran = show(book, "--attention", "--limit", "7", "--format", "json", *after)
        found += keys_in(ran)
        if "There are more" not in ran.said:
            break
        assert f"--after {found[-1]}" in ran.said
        after = ["--after", found[-1]]
    everything = show(book, "--attention", "--limit", "1000", "--format", "json")
    assert found == keys_in(everything)
    assert len(found) == 5 + 2 * 3 * 7, "with all that is missing of the other queries"


def test_partitions_that_are_named_are_listed_in_the_order_given(book: Path) -> None:
    named = [str(KEPT), str(GOOD[0]), "demo/a/campaign_daily/2031-01-01"]
    ran = show(book, *named, "--format", "json")
    assert keys_in(ran) == named
    first, good, unexpected = ran.json
    assert first["display"] == "MaterializedButLastAttemptFailed"
    assert (good["availability"], good["late"]) == ("published", False)
    assert (unexpected["due"], unexpected["attempted"]) == (False, False)
    assert list(first)[:4] == list(KEYS)


def test_a_list_for_people_says_what_to_do(book: Path) -> None:
    ran = show(book, "--attention", *CAMPAIGNS)
    lines = ran.out.splitlines()
    assert lines[1].split()[:3] == [str(WITHDRAWN), "withdrawn", "rejected"]
    assert lines[2].split()[:4] == [str(UNFETCHED), "failed", "not", "fetched"]
    [command] = re.findall(r"sealbook explain \S+", ran.said)
    check_command(command)
    assert show(book, "--stale").said == "There is none. "


def test_what_changed_since_a_time_and_since_a_cut(tmp_path: Path, ledger_url: str) -> None:
    write_status_book(tmp_path, ledger_url, customers=["a"], first_day=DAYS[-1])
    each = key("a", DAYS[-1])
    judge(tmp_path, [accepted(each)])
    with sealbook.open(tmp_path) as opened:
        opened.ledger.pointers.create_cut("before")
    judge(tmp_path, [accepted(each, 2)])
    assert "since cut before: 1 replaced" in show(tmp_path, "--changed-since", "before").out
    assert ": 1 first published" in show(tmp_path, "--changed-since", "2020-01-01T06:00").out
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    assert "nothing published has changed" in show(tmp_path, "--changed-since", str(tomorrow)).out
    ran = show(tmp_path, "--changed-since", "gone")
    assert (ran.code, "there is no cut 'gone'" in ran.said) == (1, True)


def test_what_runs_and_what_has_stalled(tmp_path: Path, ledger_url: str) -> None:
    write_status_book(tmp_path, ledger_url, customers=["a"], first_day=DAYS[-1])
    chosen = Selection(source="demo", customers="a", queries="campaign_daily", since=DAYS[-1], until=DAYS[-1])
    before = datetime.now(UTC) - timedelta(minutes=40)
    with open_ledger(ledger_url, clock=lambda: before) as ledger:
        stalled = ledger.open_run()
        ledger.runs.open_steps(Stage.EXTRACT, [stalled], [chosen])
    ran = show(tmp_path)
    assert f"stalled: {stalled}, no sign of life for 40 min" in ran.out
    for command in re.findall(r"^  (sealbook .*)$", ran.out, re.MULTILINE):
        check_command(command)
    assert "campaign_daily  ·" in ran.out.splitlines(), "nobody is at work on it"
    with open_ledger(ledger_url) as ledger:
        running = ledger.open_run()
        ledger.runs.open_steps(Stage.EXTRACT, [running], [chosen])
    ran = show(tmp_path)
    assert f"running: {running}, begun" in ran.out
    assert "campaign_daily  …" in ran.out.splitlines()
    with open_ledger(ledger_url) as ledger:
        ledger.run_store.append_event(RunEvent.new(running, "RunFailed"))
    assert re.search(rf"^last run {running} ended \d\d:\d\d, FAILED$", show(tmp_path).out, re.MULTILINE)


def test_a_book_at_which_nobody_has_been_at_work(tmp_path: Path, ledger_url: str) -> None:
    write_status_book(tmp_path, ledger_url)
    ran = show(tmp_path)
    assert ran.code == 0
    assert "There is no run yet." in ran.out
    assert "nothing published has changed" in ran.out


def test_sweeping_changes_no_answer(book: Path) -> None:
    """R-PST-7."""
    before = show(book, "--attention", "--format", "json").json
    assert run("status", "sweep", cwd=book).code == 0
    after = show(book, "--attention", "--format", "json").json
    assert [{**row, "row_version": None} for row in after] == [{**row, "row_version": None} for row in before]


def test_books_of_other_tenants_see_nothing_of_it(book: Path, tmp_path: Path) -> None:
    with sealbook.open(book) as opened:
        url = opened.settings.ledger
        opened.ledger.run_store.append_event(RunEvent.new(run_id(1), "RunStarted"))
    assert f"running: {run_id(1)}" in show(book).out
    write_status_book(tmp_path, url, customers=["z"], first_day=DAYS[-1], tenant="other")
    ran = show(tmp_path)
    assert "There is no run yet." in ran.out
    assert "nothing published has changed" in ran.out
    assert show(tmp_path, "--failed").said == "There is none. "


@pytest.fixture
def paused(book: Path) -> Iterator[Path]:
    """The book while a customer of it, and a source of another tenant, are paused."""
    scopes = {Scope("demo", "b"): "the client asked \x1b[31m", Scope("others"): "not ours"}
    with sealbook.open(book) as opened:
        for scope, reason in scopes.items():
            opened.ledger.pauses.pause(scope, actor="ann", reason=reason)
    yield book
    with sealbook.open(book) as opened:
        for scope in scopes:
            opened.ledger.pauses.resume(scope, actor="ann", reason="enough")


def test_what_is_planned_next_is_listed(book: Path) -> None:
    """R-CTL-2: the next try of what failed."""
    [failed] = run_process("status", str(FAILED), "--format", "json", cwd=book).json
    assert (failed["schedule"]["lane"], failed["schedule"]["tries"]) == ("retry", 1)
    assert failed["schedule"]["next_run_at"] > failed["last_attempt_at"]
    [missing] = run_process("status", str(MISSING), "--format", "json", cwd=book).json
    assert missing["schedule"] is None
    assert "next (UTC)" in run_process("status", "--failed", cwd=book).out


def test_the_board_says_what_is_open_and_what_is_paused(paused: Path) -> None:
    """R-CTL-7: by whom and why; of this book alone."""
    board = run_process("status", "--format", "json", cwd=paused).json["schedule"]
    assert [(each["scope"], each["actor"], each["cause"]) for each in board["pauses"]] == [
        ("demo/b/*", "ann", "operator")
    ]
    assert sum(board["lanes"]["retry"].values()) > 0
    text = run_process("status", cwd=paused).out
    assert re.search(r"^open work: \d+ (ready|waiting)", text, re.MULTILINE)
    assert r"paused: demo/b/*, by ann (operator): the client asked \x1b[31m" in text


def test_sweep_and_export_say_in_json_what_they_did(book: Path, tmp_path: Path) -> None:
    swept = run_process("status", "sweep", "--format", "json", cwd=book).json
    assert list(swept) == ["changed"]
    exported = run_process("status", "export", str(tmp_path), "--format", "json", cwd=book).json
    assert exported == {"path": str(tmp_path / "partition_status.parquet"), "partitions": 63}


@pytest.mark.parametrize(
    "command", [("status",), ("state", "inspect"), ("state", "inspect", "--format", "json"), ("--help",)]
)
def test_a_reader_that_stops_reading_is_no_failure_of_the_command(
    book: Path, command: tuple[str, ...]
) -> None:
    """As `sealbook … | head` does: it ends as if by SIGPIPE, and says nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [SEALBOOK, *command], cwd=book, stdout=writer, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, b"")
