"""Raw store, warehouse and ledger that are full or read-only: they say so, and the same command recovers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

from tests.acceptance.test_cli_run import write_book
from tests.acceptance.test_cli_stop import DAYS, check_all_published
from tests.support.books import contents
from tests.support.cli import Ran, run
from tests.support.ledger import PostgresqlServer
from tests.support.places import Way, place
from tests.support.stopping import check_steps_told

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

WAYS: list[Way] = ["full", "read-only"]
SAID = {
    "full": r"\[Errno 28\] No space left on device|database or disk is full",
    "read-only": r"\[Errno 30\] Read-only file system|attempt to write a readonly database",
}
_GO_ON = re.compile(r"To go on: sealbook (.+)")


def book_in(folder: Path, **changes: Any) -> Path:
    """Write a book whose ledger has a folder of its own."""
    book = write_book(folder)
    settings = yaml.safe_load((book / "sealbook.yaml").read_text())
    settings |= {"ledger": "sqlite:///ledger/book.db", **changes}
    (book / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    return book


def check_told(ran: Ran, where: str, way: Way) -> None:
    """The cause, its place and the way out, once each."""
    assert (ran.code, ran.out) == (1, ""), ran.err
    [error] = [line for line in ran.err.splitlines() if line.startswith("Error: ")]
    assert where in error
    assert "cannot be written" in error
    assert re.search(SAID[way], error), error
    assert "then run the same command again" in ran.said
    assert "sqlalchemy" not in ran.err


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", ["raw", "warehouse", "ledger"])
def test_a_place_that_takes_nothing_is_told_before_anything_starts(
    tmp_path: Path, which: str, way: Way
) -> None:
    """Nothing is fetched, and no run is opened, that nobody could go on with."""
    with place(tmp_path / which) as made:
        if which != "ledger":
            (tmp_path / "ledger").mkdir()
        book = book_in(tmp_path)
        assert run("runs", cwd=book).code == 0
        before = contents(book)
        with made.refusing(way):
            check_told(run("run", *DAYS, cwd=book), str(tmp_path / which), way)
        if (which, way) != ("ledger", "full"):  # there may be room for a run's first events in its pages
            assert [each for each in contents(book) if each not in before] == []
        assert run("run", *DAYS, cwd=book).code == 0
        assert len(run("warehouse", "pointers", "--format", "json", cwd=book).json) == 18
        assert run("ledger", "verify", cwd=book).code == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stage", ["validate", "load"])
def test_a_ledger_that_takes_nothing_any_more(tmp_path: Path, stage: str, way: Way) -> None:
    """What was extracted stays; the stage is done when the ledger takes it."""
    with place(tmp_path / "ledger") as made:
        book = book_in(tmp_path)
        assert run("extract", *DAYS, cwd=book).code == 0
        if stage == "load":
            assert run("validate", cwd=book).code == 0
        with made.refusing(way):
            check_told(run(stage, cwd=book), f"sqlite:///{tmp_path}/ledger/book.db", way)
        for again in ("validate", "load"):
            assert run(again, cwd=book).code == 0
        check_all_published(book)


@pytest.mark.parametrize("room", [40_000, 80_000, 120_000, 200_000, 300_000])
def test_a_ledger_that_fills_up_in_the_middle_of_a_run(tmp_path: Path, room: int) -> None:
    """Wherever it breaks off, the command that it says goes on with the same run."""
    with place(tmp_path / "ledger") as made:
        book = book_in(tmp_path)
        assert run("runs", cwd=book).code == 0
        with made.refusing("full", room):
            ran = run("run", *DAYS, cwd=book)
        if ran.code == 0:  # then there was room enough
            check_all_published(book)
            return
        check_told(ran, "ledger/book.db", "full")
        opened = "Run 0" in ran.err
        go_on = _GO_ON.search(ran.err)
        assert (go_on is not None) == opened, ran.err
        again = shlex.split(go_on[1]) if go_on else ["run", *DAYS]
        ran = run(*again, cwd=book)
        assert ran.code == 0, ran.err
        check_all_published(book)


@pytest.mark.parametrize("which", ["raw", "warehouse"])
def test_a_place_that_fills_up_in_the_middle_of_a_run(tmp_path: Path, which: str) -> None:
    """What fits is published. The rest fails with its cause, and is done once there is room."""
    with place(tmp_path / which) as made:
        (tmp_path / "ledger").mkdir()
        book = book_in(tmp_path)
        with made.refusing("full", 60_000):
            ran = run("run", *DAYS, cwd=book)
            assert ran.code in (1, 3), ran.err
            assert re.search(SAID["full"], ran.out + ran.err)
        assert run("run", *DAYS, cwd=book).code == 0
        assert run("warehouse", "verify", cwd=book).code == 0
        assert run("ledger", "verify", cwd=book).code == 0
        assert len(run("warehouse", "pointers", "--format", "json", cwd=book).json) == 18
        check_steps_told(book)


def test_a_server_that_only_reads(tmp_path: Path, postgresql: PostgresqlServer) -> None:
    """As a standby does: it is told before anything starts; when it takes writes, the same command works."""
    url = postgresql.create_ledger()
    database = make_url(url).database
    book = book_in(tmp_path, ledger=url)
    before = contents(book)
    postgresql.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    ran = run("run", *DAYS, cwd=book)
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be written: cannot execute" in ran.said
    assert "in a read-only transaction" in ran.said
    assert "default_transaction_read_only; then run the same command again" in ran.said
    assert run("state", "inspect", cwd=book).code == 0
    assert {each for each in contents(book) if each not in before} <= {"raw", "warehouse"}
    postgresql.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
    assert run("run", *DAYS, cwd=book).code == 0
    check_all_published(book)
