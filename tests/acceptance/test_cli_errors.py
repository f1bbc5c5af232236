"""What the command line says when something is wrong: cause, remedy and exit code, and no traceback."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sealbook
from sealbook.cli.failure import ExitCode, exit_code, report
from sealbook.cli.invocation import Invocation
from sealbook.errors import (
    ConfigError,
    Conflict,
    InvalidInput,
    NotMigrated,
    Permanent,
    QuotaExceeded,
    SealbookError,
    Transient,
    UnknownOutcome,
)
from sealbook.model import PartitionKey, Verdict
from tests.support.books import SETTINGS, changed, write_book
from tests.support.cli import SEALBOOK, interruptible, run, run_process

SECRET = "hunter2"

WRONG_USAGE = [
    (["nonsense"], "No such command 'nonsense'"),
    (["stat"], "Did you mean 'state', 'status'?"),
    (["state", "inspec"], "Did you mean 'inspect'?"),
    (["state", "inspect", "--nonsense"], "No such option: --nonsense"),
    (["state", "inspect", "nonsense"], "partition key 'nonsense' is not valid"),
    (["state", "inspect", "google_ads/1/q/2026-01-01"], "customer_id '1' is not valid"),
    (["state", "inspect", "google_ads/1234567890/q/2026-02-30"], "logical_date '2026-02-30' is not valid"),
    (["state", "inspect", "--source", "Google"], "source 'Google' is not valid"),
    (["state", "inspect", "--query-name", "a-b"], "query_name 'a-b' is not valid"),
    (["state", "inspect", "--customer-id", "a b"], "customer_id 'a b' is not valid"),
    (["state", "inspect", "--since", "tomorrow"], "since 'tomorrow' is not valid"),
    (["state", "inspect", "--day", "2026-13-01"], "day '2026-13-01' is not valid"),
    (["state", "inspect", "--until", "2026-13-01"], "until '2026-13-01' is not valid"),
    (["state", "inspect", "--since", "2026-01-02", "--until", "2026-01-01"], "ends before it begins"),
    (["state", "inspect", "--status", "done"], "status 'done' is not valid"),
    (["state", "inspect", "--limit", "0"], "--limit"),
    (["state", "inspect", "--limit", "many"], "--limit"),
    (["state", "inspect", "--format", "xml"], "'xml' is not one of"),
    (["state", "inspect", "demo/a/q/2026-01-01", "--source", "demo"], "Give keys or filters, not both"),
    (["run", "--lookback", "2"], "Give --day as well"),
    (["run", "--lookback", "0", "--day", "today"], "--lookback"),
    (["state", "cancel", "1", "--reason", "x"], "run_id '1' is not valid"),
    (["state", "cancel", "01J8ZQ6T5N8W3Y2V7R4K9M0XCE"], "Missing option '--reason'"),
    (["state", "history"], "Missing argument 'KEY'"),
    (["state", "history", "demo/a/q/2026-01-01", "demo/b/q/2026-01-01"], "unexpected extra argument"),
    (["state", "history", "demo/a/q"], "partition key 'demo/a/q' is not valid"),
]


@pytest.mark.parametrize(("arguments", "says"), WRONG_USAGE)
def test_wrong_usage_is_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    write_book(tmp_path)
    ran = run(*arguments, cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.said
    assert "Traceback" not in ran.err
    assert not (tmp_path / "sealbook.db").exists()


def test_wrong_configuration_is_2_and_says_where(tmp_path: Path) -> None:
    write_book(tmp_path, changed(SETTINGS, "sources.google_ads.limits.threads", 0))
    ran = run_process("state", "inspect", "--format", "json", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err == "Error: sealbook.yaml: sources.google_ads.limits.threads: expected `int` >= 1 (line 15)\n"
    )


def test_no_book_is_2_and_says_how_to_get_one(tmp_path: Path) -> None:
    ran = run("state", "inspect", cwd=tmp_path)
    assert ran.code == 2
    assert "Error: there is no sealbook.yaml in" in ran.err
    assert "remedy: `sealbook init` writes one" in ran.err


def test_a_database_that_does_not_answer_is_1_and_no_password_is_shown(tmp_path: Path) -> None:
    write_book(tmp_path, changed(SETTINGS, "ledger", f"postgresql://me:{SECRET}@127.0.0.1:1/book"))
    for debug in ([], ["--debug"]):
        ran = run("state", "inspect", *debug, cwd=tmp_path)
        assert (ran.code, ran.out) == (1, "")
        assert "Error: " in ran.err
        assert "remedy: " in ran.err
        assert SECRET not in ran.err
        assert ("Traceback" in ran.err) == bool(debug)


@pytest.mark.parametrize("arguments", [["--debug", "state", "inspect"], ["state", "inspect", "--debug"]])
def test_debug_shows_the_traceback_and_keeps_the_code(tmp_path: Path, arguments: list[str]) -> None:
    ran = run(*arguments, cwd=tmp_path)
    assert ran.code == 2
    assert ran.err.startswith("Traceback (most recent call last):")
    assert "Error: there is no sealbook.yaml in" in ran.err


def test_the_config_option_wins_over_the_variable_and_the_variable_over_the_folder(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("here", "variable", "before", "after")}
    for number, folder in enumerate(folders.values()):
        write_book(folder)
        with sealbook.open(folder) as book:
            book.ledger.judge([_rejection(run_number) for run_number in range(number)])
    env = {"SEALBOOK_CONFIG": str(folders["variable"])}
    key = "google_ads/1234567890/campaign_daily/2026-01-01"

    def attempts(*arguments: str, env: dict[str, str] | None = None) -> int:
        ran = run(*arguments, "--format", "json", cwd=folders["here"], env=env)
        (state,) = ran.json
        return int(state["attempt_count"])

    before, after = (
        ["--config", str(folders["before"])],
        ["--config", str(folders["after"] / "sealbook.yaml")],
    )
    assert attempts("state", "inspect", key) == 0
    assert attempts("state", "inspect", key, env=env) == 1
    assert attempts(*before, "state", "inspect", key, env=env) == 2
    assert attempts("state", "inspect", key, *after, env=env) == 3
    assert attempts(*before, "state", "inspect", key, *after, env=env) == 3


def _rejection(number: int, customer_id: str = "1234567890") -> Verdict:
    return Verdict.reject(
        PartitionKey.parse(f"google_ads/{customer_id}/campaign_daily/2026-01-01"),
        f"01J8ZQ6T5N8W3Y2V7R4K9M0X{number:02}",
        error_message="no good " * 10,
        validator_version="v",
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), ExitCode.WRONG_USAGE),
        (NotMigrated("x"), ExitCode.WRONG_USAGE),
        (InvalidInput("x"), ExitCode.WRONG_USAGE),
        (Transient("x"), ExitCode.FAILED),
        (QuotaExceeded("x"), ExitCode.FAILED),
        (Permanent("x"), ExitCode.FAILED),
        (Conflict("x"), ExitCode.FAILED),
        (UnknownOutcome("x"), ExitCode.FAILED),
        (SealbookError("x"), ExitCode.FAILED),
    ],
)
def test_exit_codes_tell_what_to_change_from_what_went_wrong(error: SealbookError, code: ExitCode) -> None:
    assert exit_code(error) is code


def test_the_chain_of_causes_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    root = OSError("disk full\n[SQL: INSERT INTO everything]")
    middle = ValueError("could not write")
    middle.__cause__ = root
    error = Permanent("the batch failed: could not write", remedy="Free some space.")
    error.__cause__ = middle
    report(error, Invocation())
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "Error: the batch failed: could not write",
        "  because: disk full",
        "  remedy: Free some space.",
    ]


@pytest.fixture
def long_list(tmp_path: Path) -> Path:
    """The folder of a book whose list of states is more than a pipe holds."""
    write_book(tmp_path)
    with sealbook.open(tmp_path) as book:
        book.ledger.judge([_rejection(0, f"{number:010}") for number in range(600)])
    return tmp_path


@contextmanager
def half_read(folder: Path, form: str) -> Iterator[subprocess.Popen[bytes]]:
    """List all states, and read the first line: the command is then at work, and waits for its reader."""
    command = [str(SEALBOOK), "state", "inspect", "--format", form]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=interruptible,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


@pytest.mark.parametrize("form", ["json", "table"])
def test_a_reader_that_stops_reading_is_no_error(long_list: Path, form: str) -> None:
    with half_read(long_list, form) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize("form", ["json", "table"])
def test_ctrl_c_ends_quietly_with_130(long_list: Path, form: str) -> None:
    with half_read(long_list, form) as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")
