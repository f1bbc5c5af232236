"""`sealbook demo`: the whole way of the data, and a book that the other commands work on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import run

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


def test_the_demo_publishes_what_it_accepts_and_leaves_a_book_to_work_with(tmp_path: Path) -> None:
    ran = run("demo", cwd=tmp_path)

    assert ran.code == 0, ran.err
    assert "Extracted 600 of 600 partitions" in ran.said
    assert "Accepted 596, rejected 4" in ran.said
    assert "from campaign_daily" in ran.out
    book = tmp_path / "demo"
    failed = run("state", "inspect", "--status", "failed", "--format", "json", cwd=book).json
    assert len(failed) == 4
    [told] = run("runs", "--format", "json", cwd=book).json
    assert told["status"] == "COMPLETED"
    assert [step["stepId"] for step in told["steps"]] == ["extract", "validate", "load"]
    counters = told["counters"]
    assert (counters["partitionsSealed"], counters["partitionsPublished"]) == (600, 596)
    question = "select count(*) as n from campaign_daily"
    [answer] = run("sql", question, "--format", "json", cwd=book).json
    assert answer["n"] > 0
    assert run("warehouse", "verify", cwd=book).code == 0
    assert "0 to load" in run("load", cwd=book).said  # nothing is left to do
