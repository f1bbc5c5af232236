"""`sealbook demo`: the whole way of the data, and a book that the other commands work on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Ran, run

README = Path(__file__).parents[2] / "README.md"
GIVEN_UP = "demo/1012/campaign_daily/2026-01-07"
RECOVERED = "demo/1003/campaign_daily/2026-01-02"
ROLLED_BACK = "demo/1005/device_daily/2026-01-30"

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


def steps(ran: Ran) -> list[tuple[str, str]]:
    """Return the commands of a demo, and what each printed."""
    found = re.findall(r"^\$ sealbook (.+)\n((?:(?!\$ ).*\n)*)", ran.out, re.MULTILINE)
    return [(command, printed) for command, printed in found]


def printed_by(ran: Ran, begin: str) -> list[str]:
    """Return what the steps printed whose command begins so."""
    return [printed for command, printed in steps(ran) if command.startswith(begin)]


def test_the_demo_tells_its_story_twice_and_leaves_a_book_to_work_with(tmp_path: Path) -> None:
    """R-STATE-6, R-STATE-9, R-CTL-2, R-WH-5: what the demo says of each step is so."""
    first = run("demo", "--timings", cwd=tmp_path)

    assert first.code == 0, first.err
    whole, one = printed_by(first, "run ")
    assert whole.splitlines()[:4] == [
        "extract   1,800 sealed",
        "validate  1,796 accepted, 4 rejected",
        "load      1,796 new",
        "not published",
    ]
    assert "load      1 replaced" in one
    assert printed_by(first, "control tick")[0].startswith("1 published, 1 rejected\n")
    assert GIVEN_UP in printed_by(first, "state terminal list")[0]
    assert f"{ROLLED_BACK} run " in printed_by(first, "validate --revalidate")[0]
    counts = [int(printed.split()[1]) for printed in printed_by(first, 'sql "select count(*)')]
    assert counts == [5, 0, 50], "the bad run is read, then nothing, then the run before it"
    grid, after = printed_by(first, "status")
    assert re.search(r"^1003 .*x", grid, re.MULTILINE)
    assert not re.search(r"^1003 ", after, re.MULTILINE)
    assert re.search(r"^since cut v\d+: 1 first published$", after, re.MULTILINE)
    assert "DESKTOP" in printed_by(first, "sql 'select")[0]
    assert re.search(r"^run: validate +\d+\.\d$", first.out, re.MULTILINE)
    assert f"sealbook explain {GIVEN_UP}" in first.err
    assert "WARN" not in first.out + first.err, "Spark has nothing to say"

    book = tmp_path / "demo"
    assert "READABLE. Consumers get run" in run("explain", RECOVERED, cwd=book).out
    (picture,) = re.findall(r"^```\n(query .*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    shown = run("status", cwd=book, env={"COLUMNS": "120"}).out.splitlines()
    assert [line for line in picture.splitlines() if line not in shown] == []
    assert run("warehouse", "verify", cwd=book).code == 0
    assert run("ledger", "verify", cwd=book).code == 0
    assert "0 to load" in run("load", cwd=book).said  # nothing is left to do
    (program,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert f"{GIVEN_UP} failed" in ended.stdout, ended.stderr

    again = run("demo", cwd=tmp_path)

    assert again.code == 0, again.err
    # Most days are as they were: nothing of them is staged again.
    assert "load      598 replaced, 1,198 identical" in printed_by(again, "run ")[0]
    assert "1 published" in printed_by(again, "control tick")[0]
    assert [int(printed.split()[1]) for printed in printed_by(again, 'sql "select count(*)')] == [5, 0, 50]


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"demo.yaml": ""}, "demo has demo.yaml, but is no demo book; nothing was changed"),
        ({"sealbook.yaml": "ledger: sqlite:///book.db\n", "demo.yaml": ""}, "demo has no source demo"),
    ],
)
def test_a_folder_that_is_no_demo_book_is_left_alone(
    there: dict[str, str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "demo").mkdir()
    for name, content in there.items():
        (tmp_path / "demo" / name).write_text(content)

    ran = run("demo", cwd=tmp_path)

    assert (ran.code, said in ran.said) == (2, True), ran.err
    assert {file.name: file.read_text() for file in (tmp_path / "demo").iterdir()} == there
