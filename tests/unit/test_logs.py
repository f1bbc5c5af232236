"""What is said beside results: lines for people, or one JSON object a line; never a mix of both."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from sealbook.logs import VARIABLE, said_on_stderr
from tests.support.cli import run
from tests.support.demo_books import write_demo_book

JSON = {VARIABLE: "json"}


def test_warnings_of_any_library_are_lines_for_people(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with said_on_stderr():
        logging.getLogger("some.library").warning("%d things are odd", 3)
        logging.getLogger("some.library").info("and this nobody asked for")
    logging.getLogger("some.library").warning("too late")
    assert capsys.readouterr().err == "Warning: 3 things are odd\n"


def test_warnings_are_json_with_where_they_come_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "json")
    with said_on_stderr():
        try:
            raise ValueError("what\never")
        except ValueError:
            logging.getLogger("some.library").exception("it broke")
    [line] = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert told.pop("at").endswith("+00:00")
    assert "ValueError: what" in told.pop("trace")
    assert told == {"level": "error", "event": "log", "logger": "some.library", "message": "it broke"}


def test_an_error_is_one_line_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    ran = run("status", cwd=tmp_path, env=JSON)
    [told] = map(json.loads, ran.err.splitlines())
    assert (ran.code, told["level"], told["event"], told["error"]) == (2, "error", "error", "ConfigError")
    assert "sealbook init" in told["remedy"]
    assert "trace" not in told
    [told] = map(json.loads, run("--debug", "status", cwd=tmp_path, env=JSON).err.splitlines())
    assert told["trace"].startswith("Traceback")


def test_messages_are_json_and_results_are_what_they_were(tmp_path: Path) -> None:
    write_demo_book(tmp_path)
    plain, told = run("state", "inspect", cwd=tmp_path), run("state", "inspect", cwd=tmp_path, env=JSON)
    assert told.out == plain.out
    assert plain.err
    said = [json.loads(line)["message"] for line in told.err.splitlines()]
    assert "\n".join(said) == plain.err.strip()


def test_a_format_that_there_is_not_is_refused(tmp_path: Path) -> None:
    ran = run("status", cwd=tmp_path, env={VARIABLE: "xml"})
    assert ran.code == 2
    assert "SEALBOOK_LOG is 'xml'" in ran.said
    assert "Use text or json." in ran.said
