"""From a URL to a database, and the few places where SQLite and PostgreSQL differ."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from sealbook.errors import (
    ConfigError,
    NotMigrated,
    Permanent,
    SealbookError,
    Transient,
    UnknownOutcome,
)
from sealbook.ledger.types import json_text

T = TypeVar("T")

SQLITE_BUSY_SECONDS = 600.0
"""How long a writer on SQLite waits for the others before it gives up."""

_TRIES = 6
_FIRST_PAUSE_SECONDS = 0.05
_WRITES = "sealbook_writes"
_COMMON: dict[str, Any] = {"hide_parameters": True, "json_serializer": json_text}

_POSTGRESQL_ROLLED_BACK = ("40001", "40P01")  # serialization failure, deadlock: surely not committed
_POSTGRESQL_DENIED = ("42501",)
_POSTGRESQL_NO_TABLE = ("42P01", "3F000")


class Database:
    """A connection pool that knows how to read, and how to write with a known outcome."""

    def __init__(self, url: str) -> None:
        self.url = parse_url(url)
        self.dialect = self.url.get_backend_name()
        self.in_memory = self.dialect == "sqlite" and self.url.database in (None, "", ":memory:")
        self.engine = (
            _sqlite_engine(self.url, self.in_memory)
            if self.dialect == "sqlite"
            else _postgresql_engine(self.url)
        )

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection whose statements all see one instant."""
        with self._translated(), self.engine.connect() as connection:
            yield connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do the work in one transaction; do it again if it surely left no trace the first time.

        A connection lost before the commit was sent, a deadlock and a serialization failure leave no trace.
        One lost during the commit may or may not have: that is UnknownOutcome.
        """
        for left in reversed(range(_TRIES)):
            try:
                return self._write_once(work)
            except DBAPIError as error:
                if left == 0 or not _left_no_trace(error):
                    raise self._translate(error) from error
                pause = _FIRST_PAUSE_SECONDS * 2.0 ** (_TRIES - left)
                time.sleep(pause * random.uniform(0.5, 1.0))
        raise AssertionError("unreachable: the last try returns or raises")

    def _write_once(self, work: Callable[[Connection], T]) -> T:
        with self.engine.connect().execution_options(**{_WRITES: True}) as connection:
            transaction = connection.begin()
            try:
                result = work(connection)
            except BaseException:
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except DBAPIError as error:
                if error.connection_invalidated:
                    raise UnknownOutcome(
                        f"the connection to {self} was lost during commit: the write may have happened",
                        remedy="Do the same call again: what was written is recognised and not repeated.",
                    ) from error
                raise
            return result

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._translate(error) from error

    def _translate(self, error: DBAPIError) -> SealbookError:
        """Say what a driver's error means: the one place where that is decided."""
        state = getattr(error.orig, "sqlstate", None)
        cause = str(error.orig).strip()
        if state in _POSTGRESQL_DENIED:
            return Permanent(
                f"{self} refused: {cause}",
                remedy="Connect as a user with the right role; `sealbook ledger grant` creates the roles.",
            )
        if state in _POSTGRESQL_NO_TABLE:
            return NotMigrated(f"{self} lacks a table: {cause}", remedy="Run `sealbook ledger migrate`.")
        if _sqlite_code(error) == sqlite3.SQLITE_CANTOPEN:
            return ConfigError(f"{self} cannot be opened: {cause}", remedy="Create the folder that it is in.")
        if _sqlite_code(error) == sqlite3.SQLITE_NOTADB:
            return ConfigError(f"{self} is not a SQLite database", remedy="Name another file.")
        if isinstance(error.orig, self.engine.dialect.loaded_dbapi.OperationalError):
            return Transient(f"{self} did not answer: {cause}", remedy="Check the database, then try again.")
        return Permanent(f"{self} refused: {cause}")


def parse_url(url: str) -> URL:
    """Check a ledger URL and name the driver."""
    remedy = "Use sqlite:///path/to/book.db or postgresql://user:password@host/database."
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ConfigError("the ledger URL cannot be read", remedy=remedy) from error
    match parsed.drivername:
        case "sqlite":
            if parsed.host:
                raise ConfigError(
                    f"the ledger URL {url!r} has a host where SQLite needs a path", remedy=remedy
                )
            return parsed
        case "postgresql" | "postgresql+psycopg":
            return parsed.set(drivername="postgresql+psycopg")
    raise ConfigError(f"ledger URLs of kind {parsed.drivername!r} are not supported", remedy=remedy)


def _left_no_trace(error: DBAPIError) -> bool:
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _POSTGRESQL_ROLLED_BACK


def _sqlite_code(error: DBAPIError) -> int | None:
    code = getattr(error.orig, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF  # the primary code, without its extension


def _postgresql_engine(url: URL) -> Engine:
    return create_engine(
        url,
        **_COMMON,
        # One statement may take long, but a dead peer is noticed; times are UTC whatever the server's zone.
        connect_args={"options": "-c timezone=utc", "connect_timeout": 10, "keepalives_idle": 30},
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
    )


def _sqlite_engine(url: URL, in_memory: bool) -> Engine:
    options: dict[str, Any] = {**_COMMON, "connect_args": {"timeout": SQLITE_BUSY_SECONDS}}
    if in_memory:
        # One connection is the database: a second one would see another, empty one.
        options["poolclass"] = StaticPool
        options["connect_args"]["check_same_thread"] = False
    else:
        _check_folder(url)
    engine = create_engine(url, **options)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, below
        if not in_memory:
            _switch_to_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        # A writer takes its lock at once: it waits for its turn, and never fails for having read first.
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _check_folder(url: URL) -> None:
    folder = Path(str(url.database)).parent
    if not folder.is_dir():
        raise ConfigError(
            f"the ledger's folder {folder} does not exist", remedy=f"Create it: mkdir -p {folder}"
        )


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Let readers and the writer work at once; the switch itself does not wait for a lock, so this does."""
    deadline = time.monotonic() + SQLITE_BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
