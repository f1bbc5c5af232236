"""`sealbook console` as a user starts it: in a process of its own, on a socket; and its tokens."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest

from tests.support.cli import SEALBOOK, run
from tests.support.demo_books import write_demo_book
from tests.support.pages import follow


@pytest.fixture
def book(tmp_path: Path) -> Path:
    write_demo_book(tmp_path)
    return tmp_path


@contextmanager
def serving(book: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a console, and yield its process with the address that it prints."""
    command: list[str | Path] = [SEALBOOK, "console", "--no-open", "--port", "0", *options]
    with subprocess.Popen(command, cwd=book, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"http://\S+", said)
            assert found, said
            yield process, found[0]
        finally:
            process.terminate()


def request_of(address: str, path: str, **headers: str) -> urllib.request.Request:
    """Return a request for a page of the console at an address, with the token that is in it."""
    base, _, token = address.partition("/?token=")
    given = {"Authorization": f"Bearer {token}"} if token else {}
    return urllib.request.Request(f"{base}{path}", headers={**given, **headers})


def asked(address: str, path: str = "/runs.json", **headers: str) -> tuple[int, str]:
    """Ask, and return the status and the body."""
    try:
        with urllib.request.urlopen(request_of(address, path, **headers), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_it_answers_on_this_machine_until_it_is_stopped(book: Path) -> None:
    with serving(book) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert asked(address) == (200, "[]\n")
        assert asked(address, "/healthz") == (200, "ok\n")
        assert asked(address.partition("?")[0].rstrip("/"))[0] == 401
        assert asked(address, Host="evil.example")[0] == 421
        with urllib.request.urlopen(request_of(address, "/live"), timeout=20) as stream:
            assert stream.readline() == b"retry: 2000\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM


def test_read_only_makes_no_ledger(book: Path) -> None:
    ran = run("console", "--read-only", "--no-open", cwd=book)
    assert ran.code == 2
    assert "there is no ledger" in ran.said
    assert not (book / "sealbook.db").exists()


def test_an_address_that_others_reach_is_refused_without_a_way_to_know_them(book: Path) -> None:
    ran = run("console", "--host", "0.0.0.0", "--no-open", cwd=book)
    assert ran.code == 2
    assert "no way by which they are known" in ran.said
    assert "sealbook console token create" in ran.said


def test_a_port_that_is_taken_is_named(book: Path) -> None:
    with serving(book) as (_, address):
        port = address.partition("/?")[0].rpartition(":")[2]
        ran = run("console", "--port", port, "--no-open", cwd=book)
    assert ran.code == 2
    assert f"port {port} cannot be had" in ran.said


def test_tokens_are_made_listed_and_revoked(book: Path) -> None:
    made = run("console", "token", "create", "ann", "--role", "operator", "--format", "json", cwd=book).json
    listed = run("console", "token", "list", "--format", "json", cwd=book).json
    assert listed == [{name: made[name] for name in ("id", "name", "role", "created_at", "expires_at")}]
    assert made["token"] not in (book / "console-tokens.json").read_text()
    with serving(book) as (_, address):
        base = address.partition("/?")[0]
        given = {"Authorization": f"Bearer {made['token']}"}
        assert asked(base, **given)[0] == 200
        assert run("console", "token", "revoke", made["id"], cwd=book).code == 0
        assert asked(base, **given)[0] == 401
    assert run("console", "token", "revoke", "ann", cwd=book).code == 1


def test_what_the_how_to_says_of_tokens(book: Path) -> None:
    shown = follow("how-to/console.md", book)
    assert "1 token of ann revoked." in shown


@pytest.mark.parametrize("command", [["runs"], ["console", "token", "list"], ["control", "lanes"]])
def test_a_command_that_does_not_serve_loads_nothing_of_the_console(book: Path, command: list[str]) -> None:
    program = (
        "import json, sys; from sealbook.cli import main; main(sys.argv[1:]);"
        "extra = {'starlette', 'uvicorn', 'jinja2', 'prometheus_client'};"
        "print(json.dumps(sorted(extra.intersection(sys.modules))))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=book, capture_output=True, text=True, timeout=60
    )
    assert json.loads(ended.stdout.splitlines()[-1]) == []


def test_without_the_extra_the_command_names_it(book: Path) -> None:
    program = (
        "import sys; sys.modules['starlette'] = None; from sealbook.cli import main;"
        "sys.exit(main(['console', '--no-open']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=book, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert "pip install 'sealbook[console]'" in ended.stderr.replace("\n", " ")
