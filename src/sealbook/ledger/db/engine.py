"""From a URL to a database, and the few places where SQLite and PostgreSQL differ."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from sealbook.errors import (
    ConfigError,
    NotMigrated,
    Permanent,
    SealbookError,
    Transient,
    UnknownOutcome,
)
from sealbook.ledger.db.types import json_text
from sealbook.ledger.db.urls import CONNECT_TIMEOUT, answers, parse_url, printable

T = TypeVar("T")

SQLITE_BUSY_SECONDS = 600.0
"""How long a writer on SQLite waits for the others before it gives up."""

_SQLITE_CACHE_KB = 16_000  # what the writes of a batch touch stays in memory until its commit

_PAUSES_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6)  # before each further try
_WRITES = "sealbook_writes"
_COMMON: dict[str, Any] = {"hide_parameters": True, "json_serializer": json_text}

_POSTGRESQL_ROLLED_BACK = ("40001", "40P01")  # serialization failure, deadlock: surely not committed
_POSTGRESQL_DENIED = ("42501", "25006")  # no privilege, a connection that only reads
_POSTGRESQL_NO_TABLE = ("42P01", "3F000")


class Database:
    """A connection pool that knows how to read, and how to write with a known outcome."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url = parse_url(url)
        self.dialect = self.url.get_backend_name()
        self.in_memory = self.dialect == "sqlite" and self.url.database in (None, "", ":memory:")
        self.engine = (
            _sqlite_engine(self.url, self.in_memory, read_only)
            if self.dialect == "sqlite"
            else _postgresql_engine(self.url, read_only)
        )
        self._connect: Callable[[], AbstractContextManager[Connection]] = self.engine.connect
        self._has_connected = False
        event.listen(self.engine, "connect", self._on_connect, once=True)

    def __str__(self) -> str:
        return printable(self.url)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection to read with; each statement sees one instant."""
        with self._translated(), self._connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Database]:
        """Yield the database as it is at one instant, to be read any number of times, by any thread."""
        with self.read() as connection:
            if self.dialect == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ")
            at_one_instant = copy(self)
            at_one_instant._connect = partial(_in_turn, connection, Lock())  # noqa: SLF001 - of the same class
            yield at_one_instant

    def write(self, work: Callable[[Connection], T], *, repeatable: bool = False) -> T:
        """Do the work in one transaction; do it again if it surely left no trace the first time.

        A connection lost before the commit was sent, a deadlock and a serialization failure leave no trace.
        One lost during the commit may or may not have: that is UnknownOutcome, unless the work is
        `repeatable`, which says that done twice it changes no more than done once.
        """
        pauses = iter(_PAUSES_SECONDS)
        while True:
            try:
                return self._write_once(work)
            except DBAPIError as error:
                may_repeat = self._unanswered(error) or _sqlstate(error) in _POSTGRESQL_ROLLED_BACK
                pause = next(pauses, None) if may_repeat else None
                if pause is None:
                    raise self._translate(error) from error
            except UnknownOutcome:
                pause = next(pauses, None) if repeatable else None
                if pause is None:
                    raise
            except PoolTimeout as error:
                raise self._all_in_use() from error
            time.sleep(pause * random.uniform(0.5, 1.0))

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
                if self._unanswered(error):
                    raise UnknownOutcome(
                        f"the connection to {self} was lost during commit: the write may have happened",
                        remedy="Deliver verdicts again: each counts once. After a control action, look at"
                        " the state first: `sealbook state inspect`.",
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
        except PoolTimeout as error:
            raise self._all_in_use() from error

    def _on_connect(self, *_connection: object) -> None:
        self._has_connected = True

    def _all_in_use(self) -> Transient:
        return Transient(
            f"all connections to {self} are in use",
            remedy="Read iterators to their end, or let go of them; then try again.",
        )

    def _translate(self, error: DBAPIError) -> SealbookError:
        """Say what a driver's error means: the one place where that is decided."""
        state = _sqlstate(error)
        cause = str(error.orig).strip()
        if state in _POSTGRESQL_DENIED:
            return Permanent(
                f"{self} refused: {cause}",
                remedy="Connect as a user with the right role; `sealbook ledger grant` creates the roles.",
            )
        if state in _POSTGRESQL_NO_TABLE:
            return NotMigrated(f"{self} lacks a table: {cause}", remedy="Run `sealbook ledger migrate`.")
        match _sqlite_code(error):
            case sqlite3.SQLITE_CANTOPEN:
                return ConfigError(
                    f"{self} cannot be opened: {cause}",
                    remedy="Name a file that exists or can be created, in a folder that can be written to.",
                )
            case sqlite3.SQLITE_NOTADB:
                return ConfigError(f"{self} is not a SQLite database", remedy="Name another file.")
            case sqlite3.SQLITE_READONLY:
                return Permanent(
                    f"{self} cannot be written: {cause}",
                    remedy="Get the right to write the file and its folder.",
                )
        if self._is_refused(error):
            return ConfigError(
                f"{self} answered, and refused the connection: {cause.rpartition('FATAL:')[2].strip()}",
                remedy="Check the user, the password and the database in the ledger's URL.",
            )
        if self._is_operational(error):
            return Transient(
                f"{self} did not answer: {cause}",
                remedy="Check the ledger's URL and that the database runs, then try again.",
            )
        return Permanent(f"{self} refused: {cause}")

    def _unanswered(self, error: DBAPIError) -> bool:
        """Tell whether PostgreSQL was not reached, or was lost before it said how a statement ended."""
        return self.dialect == "postgresql" and (
            error.connection_invalidated or (_sqlstate(error) is None and self._is_operational(error))
        )

    def _is_refused(self, error: DBAPIError) -> bool:
        """Tell a server that would not have us from one that is not there: libpq gives no code for either.

        Once a connection was made, the URL is right, and what is wrong may pass.
        """
        return self._unanswered(error) and not self._has_connected and answers(self.url)

    def _is_operational(self, error: DBAPIError) -> bool:
        return isinstance(error.orig, self.engine.dialect.loaded_dbapi.OperationalError)


@contextmanager
def _in_turn(connection: Connection, turn: Lock) -> Iterator[Connection]:
    with turn:
        yield connection


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _sqlite_code(error: DBAPIError) -> int | None:
    code = getattr(error.orig, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF  # the primary code, without its extension


def _postgresql_engine(url: URL, read_only: bool) -> Engine:
    # A dead peer is noticed; times are UTC whatever the server's zone. What the URL says comes first.
    options = f"-c timezone=utc {url.query.get('options', '')}".strip()
    defaults = {"connect_timeout": CONNECT_TIMEOUT, "keepalives_idle": "30"}
    connect_args = {name: url.query.get(name, value) for name, value in defaults.items()}
    connect_args["options"] = f"{options} -c default_transaction_read_only=on" if read_only else options
    return create_engine(
        url, **_COMMON, connect_args=connect_args, isolation_level="READ COMMITTED", pool_pre_ping=True
    )


def _sqlite_engine(url: URL, in_memory: bool, read_only: bool) -> Engine:
    options: dict[str, Any] = {"pool_timeout": SQLITE_BUSY_SECONDS}
    if in_memory:
        # One connection is the database, and serves one thread after the other.
        options |= {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    else:
        _check_file(url) if read_only else _check_folder(url)
        options |= {"max_overflow": -1}  # whoever must wait, waits for the database
    engine = create_engine(
        url,
        **_COMMON,
        **options,
        connect_args={"timeout": SQLITE_BUSY_SECONDS, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, below
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        elif not in_memory:
            _switch_to_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")  # batches are of bounded size
        connection.execute(f"PRAGMA cache_size = -{_SQLITE_CACHE_KB}")

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


def ledger_exists(url: str) -> bool:
    """Say whether there is a ledger to open, without connecting: only SQLite's is made when it is opened."""
    parsed = parse_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(str(parsed.database)).is_file()


def _check_file(url: URL) -> None:
    if not Path(str(url.database)).is_file():  # which SQLite would create
        raise NotMigrated(f"there is no ledger at {url.database}", remedy="Run `sealbook ledger migrate`.")


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
