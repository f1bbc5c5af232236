"""`sealbook explain`: in words that fit a terminal, with commands that can be copied, and as JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import sealbook
from sealbook.model import Check, PartitionKey, Verdict
from tests.support.cli import run, run_process
from tests.support.commands import check_command
from tests.support.ledger import run_id
from tests.support.statuses import accepted, days, judge, key, rejected, write_status_book

FIRST, SECOND = days(2)
READABLE, REJECTED = key("a", FIRST), key("a", SECOND)
CHECK = Check("primary_key", passed=False, violations=7, lines=(21, 22), detail="7 lines repeat an id")


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Path:
    write_status_book(tmp_path, ledger_url, first_day=FIRST, freshness={"due": ["0h", "3d"], "max_lag": "1h"})
    bad = Verdict.reject(REJECTED, run_id(1), error_message="bad", validator_version="v", checks=(CHECK,))
    judge(tmp_path, [accepted(READABLE), bad])
    return tmp_path


def explain(book: Path, key: PartitionKey, width: int = 80) -> str:
    env = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(width)}
    ran = run("explain", str(key), cwd=book, env=env)
    assert (ran.code, ran.err) == (0, "")
    return re.sub(r"\x1b\[[0-9;]*m", "", ran.out)


def test_a_partition_that_can_be_read(book: Path) -> None:
    lines = explain(book, READABLE, 200).splitlines()
    assert lines[0] == str(READABLE)
    assert re.fullmatch(
        rf"READABLE\. Consumers get run {run_id(1)}, published .* UTC: 10 rows of schema_version 1\.",
        lines[1],
    )
    assert re.fullmatch(r"Next: It is due again .* UTC, and late from .* UTC on\.", lines[3])
    assert lines[4:] == [
        "History: 1 run, 1 judgement, published once.",
        f"  see every judgement  sealbook state history {READABLE}",
    ]


@pytest.mark.parametrize("width", [80, 140])
def test_a_partition_that_cannot(book: Path, width: int) -> None:
    text = explain(book, REJECTED, width)
    assert "NOT READABLE. Consumers get nothing: no run of it was ever published." in text
    assert "  primary_key: 7 lines repeat an id (lines 21, 22, …)" in text
    commands = re.findall(r"sealbook \w.*?(?=  \(|$)", text, re.MULTILINE)
    retry = f"sealbook state retry {REJECTED} --reason '…'"  # as long as its time has not come
    assert [each for each in commands if each != retry] == [
        f"sealbook run {REJECTED}",
        f"sealbook validate --rejected {REJECTED}",
        f"sealbook raw show {REJECTED} --lines 21,22",
        f"sealbook state history {REJECTED}",
    ]
    for command in commands:
        check_command(command)
    assert max(map(len, text.splitlines())) <= width
    assert not re.search(r" $", text, re.MULTILINE)


def test_nothing_is_said_twice(book: Path) -> None:
    for each in (READABLE, REJECTED, key("b", FIRST), key("zz", FIRST)):
        lines = [line for line in explain(book, each, 200).splitlines() if line]
        assert len(set(lines)) == len(lines)


def test_json_is_one_object(book: Path) -> None:
    found = run_process("explain", str(REJECTED), "--format", "json", cwd=book).json
    assert list(found) == [
        "source", "customer_id", "query_name", "logical_date", "availability", "display", "reading", "text",
        "run_id", "since", "schema_version", "record_count", "day", "problems", "next", "schedule",
        "due_points", "history",
    ]  # fmt: skip
    assert (found["reading"], found["display"]) == ("not_readable", "NeverMaterialized")
    [problem] = found["problems"]
    assert problem["kind"] == "rejected"
    assert problem["findings"] == [
        {"check": "primary_key", "detail": "7 lines repeat an id", "violations": 7, "lines": [21, 22]}
    ]


def test_what_comes_from_outside_cannot_disturb_a_terminal(book: Path) -> None:
    for run_number, checks in enumerate([(), (replace(CHECK, detail="red \x1b[31m"),)], start=2):
        judge(
            book,
            [
                Verdict.reject(
                    REJECTED, run_id(run_number), error_message="red \x1b[31m", validator_version="v",
                    checks=checks,
                )
            ],
        )  # fmt: skip
        out = run("explain", str(REJECTED), cwd=book).out
        assert r"red \x1b[31m" in out
        assert "\x1b" not in out


def test_the_same_from_python(book: Path) -> None:
    judge(book, [rejected(READABLE, 1, again="x")])
    with sealbook.open(book) as opened:
        [problem] = opened.explain(READABLE).problems
        assert problem.kind == "withdrawn"
    with sealbook.open(book, read_only=True) as reader:
        assert reader.explain(READABLE).problems == (problem,)


def test_in_full_it_shows_the_judgement_and_all_that_happened(book: Path) -> None:
    env = {"COLUMNS": "200"}
    text = run("explain", str(REJECTED), "--full", cwd=book, env=env).out
    assert f"Judgement 1: run {run_id(1)} was rejected" in text
    assert "  primary_key: failed, 7 lines repeat an id" in text
    assert "    line 21: (" in text  # there is no payload, which is said
    assert re.search(rf"rejected +{run_id(1)} +bad", text)
    brief, full = (
        run_process("explain", str(REJECTED), *more, "--format", "json", cwd=book).json
        for more in ((), ("--full",))
    )
    assert list(full) == [*brief, "verdict", "attempts", "timeline", "runs", "actions"]
    assert full["problems"] == brief["problems"]
    assert [each["action"] for each in full["actions"]] == ["retry", "reprocess", "mark"]


def test_a_judgement_is_named_with_full_alone(book: Path) -> None:
    ran = run("explain", str(REJECTED), "--attempt", "1", cwd=book)
    assert ran.code == 2
    assert "Give --full as well" in ran.err
    assert "has no judgement 9" in run("explain", str(REJECTED), "--full", "--attempt", "9", cwd=book).err
