"""SIGINT and SIGTERM: one way to stop, at any moment of any stage, and the command that goes on."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sealbook.raw import RawStore
from tests.acceptance.test_cli_run import write_book
from tests.support.cli import run
from tests.support.gates import Gate
from tests.support.stopping import Command, check_steps_told, is_java, started

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

DAYS = ("--since", "2026-01-01", "--until", "2026-01-02")
SIGNALS = [signal.SIGINT, signal.SIGTERM]


def check_all_published(book: Path, partitions: int = 18) -> None:
    """All is as if nothing had happened: one run, which has ended, and all of it can be read."""
    [snapshot] = run("runs", "--format", "json", cwd=book).json
    assert (snapshot["status"], snapshot["inconsistent"]) == ("COMPLETED", [])
    assert len(run("warehouse", "pointers", "--format", "json", cwd=book).json) == partitions
    assert run("warehouse", "verify", cwd=book).code == 0
    assert run("ledger", "verify", cwd=book).code == 0
    check_steps_told(book)


@pytest.mark.parametrize("number", SIGNALS)
def test_while_java_starts(tmp_path: Path, number: signal.Signals) -> None:
    """Java has only just been started, and has not answered yet."""
    book = write_book(tmp_path)
    with started(book, "run", *DAYS) as command:
        command.wait_for_process(is_java)
        command.stop(number).check(book)
    check_all_published(book)


@pytest.mark.parametrize("number", SIGNALS)
def test_while_partitions_are_fetched(tmp_path: Path, number: signal.Signals) -> None:
    book = write_book(tmp_path, latency_seconds=0.3)
    store = RawStore.open(str(book / "raw"))
    with started(book, "run", *DAYS) as command:
        command.wait_until(lambda: any(True for _ in store.sealed()))
        command.stop(number).check(book)
    check_all_published(book)


def test_while_java_hangs(tmp_path: Path) -> None:
    """Nobody waits for its answer, and it does not get more than a few seconds to end by itself."""
    book = write_book(tmp_path, latency_seconds=0.3)
    store = RawStore.open(str(book / "raw"))
    with started(book, "run", *DAYS) as command:
        command.wait_until(lambda: any(True for _ in store.sealed()))
        command.suspend(is_java)
        command.stop(signal.SIGTERM).check(book)
    check_all_published(book)


@pytest.mark.parametrize(("stage", "number"), [("validate", signal.SIGTERM), ("load", signal.SIGINT)])
def test_while_payloads_are_read(tmp_path: Path, stage: str, number: signal.Signals) -> None:
    book = write_book(tmp_path)
    for earlier in (["extract", *DAYS], ["validate"])[: 1 if stage == "validate" else 2]:
        assert run(*earlier, cwd=book).code == 0
    gate = Gate(min(book.glob("raw/demo/*/*/*/*/payload-*.jsonl")))
    with started(book, stage) as command:
        gate.wait_for_reader()
        stopped = command.stop(number)
        gate.open()
        stopped.check(book)
    assert run("load", cwd=book).code == 0
    check_all_published(book)


@pytest.mark.parametrize("number", SIGNALS)
def test_while_pointers_are_swapped(tmp_path: Path, number: signal.Signals) -> None:
    """All is staged, and the swap waits for another writer: it is not made, or wholly."""
    book = write_book(tmp_path)
    for earlier in (["extract", *DAYS], ["validate"]):
        assert run(*earlier, cwd=book).code == 0
    with started(book, "load") as command:
        with other_writer(book, command):
            command.send(number)
        command.ended(number).check(book)
    check_all_published(book)


@contextmanager
def other_writer(book: Path, command: Command) -> Iterator[None]:
    """Hold the ledger's write lock from the moment at which the last artifact is staged."""
    command.wait_until(lambda: any(book.glob("warehouse/**/*.parquet")))
    with closing(sqlite3.connect(book / "book.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        command.wait_until(lambda: len(list(book.glob("warehouse/**/*.parquet"))) == 18)
        yield
        connection.execute("ROLLBACK")
