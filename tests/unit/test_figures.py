"""Figures are gathered from processes that may die, and the page says what was gathered, misses first."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.__main__ import ALL_HELD, INCOMPLETE, MISSED, exit_code, main, table
from bench.figures import Comparison, Figures, Machine, continued, read, write
from bench.gathering import Gatherer, about, names
from bench.harness import Result, duration, noted, speed
from bench.page import FIGURES, PAGE, page
from bench.scale import VARIABLE, Scale, sized

MACHINE = Machine("Linux x86_64", cores=2, memory_gigabytes=8, versions={"Python": "3.11.2"})
HELD = duration("load, against DuckDB", 9, 10, at_most=1)
BROKEN = speed("read | scan, against <Spark>", 2, 1, at_least=1, why="It plans twice.")
NOTED = noted("what a row takes", 1_234, "bytes")


def made(name: str, *results: Result, failure: str | None = None, load: float = 0.5) -> Comparison:
    began_at = datetime(2026, 11, 18, tzinfo=UTC)
    return Comparison(name, f"About {name}.", began_at, "abc", load, 61.0, results, failure)


def figures(*comparisons: Comparison) -> Figures:
    return Figures(Scale.SMALL, MACHINE, comparisons)


def lines_of(text: str, begin: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(begin)]


def test_the_page_says_what_the_file_of_figures_says() -> None:
    """`python -m bench.page` writes both anew; neither is edited by hand."""
    assert PAGE.read_text("utf-8") == page(read(FIGURES))


def test_there_are_figures_of_every_comparison() -> None:
    assert [each.name for each in read(FIGURES).comparisons] == names()


def test_a_missed_bound_is_named_with_its_reason() -> None:
    text = page(figures(made("load", HELD, BROKEN)))
    [line] = lines_of(text, "- load: ")
    assert "**0.50 x speed**, bound ≥ 1. It plans twice." in line
    assert "No bound was missed" not in text
    [row] = lines_of(text, "| read ")
    assert "**missed**" in row


def test_a_reason_that_nobody_knows_is_not_made_up() -> None:
    [line] = lines_of(page(figures(made("load", duration("slow", 2, 1, at_most=1)))), "- load: ")
    assert line.endswith("Why is not known.")


def test_a_page_without_a_miss_says_so() -> None:
    assert "No bound was missed." in page(figures(made("load", HELD)))


def test_what_was_promised_by_nobody_is_neither_held_nor_missed() -> None:
    text = page(figures(made("load", HELD, NOTED)))
    assert lines_of(text, "| [load](#load)") == ["| [load](#load) | About load. | 1 | 0 | 1:01 |"]
    assert lines_of(text, "| what a row takes") == ["| what a row takes | 1,234 bytes | - |  |  |"]


def test_a_comparison_that_did_not_end_is_named_and_counts_as_failed() -> None:
    text = page(figures(made("load", failure="killed by SIGKILL")))
    assert lines_of(text, "- **load** did not come to its end") == [
        "- **load** did not come to its end: killed by SIGKILL"
    ]
    assert lines_of(text, "| [load](#load)") == ["| [load](#load) | About load. | 0 | **failed** | 1:01 |"]


def test_text_does_not_break_the_table() -> None:
    [row] = lines_of(page(figures(made("load", BROKEN))), "| read ")
    assert row.startswith("| read \\| scan, against &lt;Spark> | 0.50 x speed |")


@pytest.mark.parametrize(("load", "noisy"), [(1.9, False), (7.5, True)])
def test_the_page_says_whether_others_were_at_work(load: float, noisy: bool) -> None:
    text = page(figures(made("load", HELD), made("read", HELD, load=load)))
    assert f"0.5 to {load} when" in text
    assert ("ratios are noisy" in text) is noisy


def test_figures_come_back_from_their_file(tmp_path: Path) -> None:
    written = figures(made("load", HELD, BROKEN), made("read", failure="dead"))
    write(written, tmp_path / "new" / "figures.json")
    assert read(tmp_path / "new" / "figures.json") == written
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["figures.json"]


def test_a_comparison_takes_the_place_of_the_last_one_of_its_name() -> None:
    before = figures(made("load", BROKEN), made("read", HELD))
    after = before.including(made("load", HELD)).including(made("judge", HELD))
    assert after.comparisons == (made("judge", HELD), made("load", HELD), made("read", HELD))


def test_figures_go_on_from_those_of_the_same_machine_and_scale(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    other = Machine("Linux x86_64", cores=64, memory_gigabytes=8, versions={})
    assert continued(file, Scale.SMALL, MACHINE, ["load"]) == figures()
    write(figures(made("load", HELD), made("gone", HELD)), file)
    assert continued(file, Scale.SMALL, MACHINE, ["load"]) == figures(made("load", HELD))
    assert continued(file, Scale.FULL, MACHINE, ["load"]) == Figures(Scale.FULL, MACHINE)
    assert continued(file, Scale.SMALL, other, ["load"]) == Figures(Scale.SMALL, other)


def gather(folder: Path, program: str) -> tuple[Comparison, str]:
    said = StringIO()
    gatherer = Gatherer(Scale.SMALL, folder, Console(file=said), (sys.executable, "-c", program))
    return gatherer.make("bytes", "[1/1] "), said.getvalue()


def test_results_come_from_a_process_that_is_told_the_scale(tmp_path: Path) -> None:
    result = msgspec.json.encode([HELD]).decode()
    found, said = gather(
        tmp_path,
        "import os, sys, pathlib\n"
        f"assert os.environ[{VARIABLE!r}] == 'small' and sys.argv[1] == 'bytes'\n"
        f"pathlib.Path(sys.argv[2]).write_text({result!r})",
    )
    assert (found.name, found.about, found.results, found.failure) == ("bytes", about("bytes"), (HELD,), None)
    begun, ended = said.splitlines()
    assert begun == f"[1/1] bytes: {about('bytes')}"
    assert re.fullmatch(r"\[1/1\] bytes: 1 bounds held, 0 missed after \d+:\d\d", ended)


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("raise ValueError('no [/such] table')", "ValueError: no [/such] table"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("raise SystemExit(4)", "exit code 4"),
        ("pass", "it wrote no results"),
    ],
)
def test_a_process_that_fails_or_dies_comes_back_as_a_failure(
    tmp_path: Path, program: str, failure: str
) -> None:
    (tmp_path / "bytes.json").write_text("[]")  # of an earlier time
    found, said = gather(tmp_path, program)
    assert (found.results, found.failure) == ((), failure)
    assert re.search(rf"FAILED after \d+:\d\d: {re.escape(failure)}", said)
    shown = StringIO()
    Console(file=shown, width=120).print(table(found))
    assert failure in shown.getvalue()


def test_every_comparison_says_what_it_compares() -> None:
    assert all(about(name).endswith(".") for name in names())


def test_the_exit_code_tells_the_worst() -> None:
    held, missed, failed = made("a", HELD, NOTED), made("b", BROKEN), made("c", failure="dead")
    assert exit_code([held]) == ALL_HELD
    assert exit_code([held, missed]) == MISSED
    assert exit_code([failed, held, missed]) == INCOMPLETE


def test_a_comparison_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bytes", "nonsense"])
    assert stopped.value.code == 2
    assert "no such comparison: nonsense; there are " in capsys.readouterr().err


def test_sizes_go_by_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    for scale in Scale:
        monkeypatch.setenv(VARIABLE, scale)
        assert sized(small=Scale.SMALL, full=Scale.FULL) is scale
