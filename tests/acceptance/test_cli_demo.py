"""`sealbook demo`: the whole way of the data, and a book that the other commands work on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import run

README = Path(__file__).parents[2] / "README.md"

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


def test_the_demo_publishes_what_it_accepts_and_leaves_a_book_to_work_with(tmp_path: Path) -> None:
    ran = run("demo", cwd=tmp_path)

    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[:4] == [
        "extract   600 sealed",
        "validate  596 accepted, 4 rejected",
        "load      596 new",
        "not published",
    ]
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
    (program,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert "demo/1003/campaign_daily/2026-01-02 failed" in ended.stdout, ended.stderr
