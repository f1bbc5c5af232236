"""On PostgreSQL the console has no more rights than who uses it: the database refuses the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url, text

import sealbook
from sealbook.errors import ConfigError, SealbookError
from sealbook.ledger import grant_roles, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.roles import RIGHTS, url_in_role
from tests.support.console import VIC, asking
from tests.support.console_books import GOOD, write_lively_book
from tests.support.demo_books import write_demo_book
from tests.support.ledger import PostgresqlServer, run_id

PAGES = (
    "/runs", f"/runs/{run_id(1)}", "/backfills", "/backfills/old", "/lanes", "/leases", "/pauses", "/budget",
    "/cuts", "/contracts", "/audit", "/alerts", "/metrics", "/healthz",
)  # fmt: skip


@pytest.fixture
def ledger_of_ann(postgresql: PostgresqlServer, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A lively ledger as a user has it who may be a viewer and control; and the prefix of the roles."""
    url, prefix = postgresql.create_ledger(), f"r{uuid4().hex[:12]}_"
    write_lively_book(tmp_path, ledger=url)
    grant_roles(url, prefix)
    user = f"user_{prefix}ann"
    postgresql.execute(f"CREATE ROLE {user} LOGIN IN ROLE {prefix}viewer, {prefix}control")
    yield postgresql.url(str(make_url(url).database), user), prefix
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"DROP ROLE {user}".encode())
        for role in RIGHTS:
            admin.execute(f"DROP OWNED BY {prefix}{role}".encode())
            admin.execute(f"DROP ROLE {prefix}{role}".encode())


def role_of(url: str) -> str:
    with closing(Database(url)) as database, database.read() as connection:
        return str(connection.execute(text("SELECT current_user")).scalar_one())


def test_a_console_takes_on_the_role_of_who_looks_and_of_who_acts(ledger_of_ann: tuple[str, str]) -> None:
    url, prefix = ledger_of_ann
    assert role_of(url_in_role(url, "viewer")) == f"{prefix}viewer"
    assert role_of(url_in_role(url, "control")) == f"{prefix}control"
    assert role_of(url_in_role(url, "viewer", f"{prefix}control")) == f"{prefix}control"


def test_every_page_is_shown_with_the_rights_of_a_viewer(
    ledger_of_ann: tuple[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "viewed"
    write_demo_book(folder, ledger=url_in_role(ledger_of_ann[0], "viewer"))
    with asking(folder, VIC, read_only=True) as client:
        answers = {path: client.get(path) for path in PAGES}
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(PAGES, 200)


def test_who_looks_can_write_nothing_whatever_is_asked_of_the_ledger(ledger_of_ann: tuple[str, str]) -> None:
    url = url_in_role(ledger_of_ann[0], "viewer")
    with open_ledger(url) as ledger:  # not even as what can write
        with pytest.raises(SealbookError):
            ledger.requeue([GOOD], actor="vic", reason="to try it")
        with pytest.raises(SealbookError):
            ledger.pointers.create_cut("mine")


def test_who_acts_may_do_what_operators_do_and_give_no_verdict(ledger_of_ann: tuple[str, str]) -> None:
    with open_ledger(url_in_role(ledger_of_ann[0], "control")) as ledger:
        assert ledger.pointers.create_cut("mine").token == "mine"
        ledger.pointers.drop_cut("mine")


def test_a_role_that_one_may_not_take_on_is_refused(ledger_of_ann: tuple[str, str]) -> None:
    with pytest.raises(SealbookError):
        role_of(url_in_role(ledger_of_ann[0], "viewer", "postgres"))


def test_where_no_roles_were_granted_the_connection_is_as_it_is(postgresql: PostgresqlServer) -> None:
    url = postgresql.create_ledger()
    assert url_in_role(url, "viewer") == url


def test_sqlite_has_no_roles(tmp_path: Path) -> None:
    write_demo_book(tmp_path)
    with sealbook.open(tmp_path) as book:
        book.catch_up()
        url = book.settings.ledger
    assert url_in_role(url, "viewer") == url
    with pytest.raises(ConfigError, match="has no roles"):
        url_in_role(url, "viewer", "sealbook_viewer")
