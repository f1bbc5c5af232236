"""Engines that connect as a ledger needs it, to a SQLite file or to PostgreSQL."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from sealbook.errors import ConfigError, NotMigrated
from sealbook.ledger.db.failures import sqlite_code
from sealbook.ledger.db.types import json_text
from sealbook.ledger.db.urls import CONNECT_TIMEOUT, parse_url

WRITES = "sealbook_writes"
"""The execution option of a connection that is to write."""

SQLITE_BUSY_SECONDS = 600.0
"""How long a writer on SQLite waits for the others before it gives up."""

_SQLITE_TRY_SECONDS = 0.1
"""How long it waits at a time: while SQLite waits, no signal is handled."""

_SQLITE_PAUSE_SECONDS = 0.01  # some locks SQLite does not wait for at all
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_SQLITE_CACHE_KB = 16_000  # what the writes of a batch touch stays in memory until its commit
_COMMON: dict[str, Any] = {"hide_parameters": True, "json_serializer": json_text}


def make_engine(url: URL, *, in_memory: bool, read_only: bool) -> Engine:
    """Return an engine for a checked URL; nothing is connected yet."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, in_memory, read_only)
    return _postgresql_engine(url, read_only)


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
            _wait_for_lock(lambda: connection.execute("PRAGMA journal_mode = WAL"))
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")  # batches are of bounded size
        connection.execute(f"PRAGMA cache_size = -{_SQLITE_CACHE_KB}")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES, False):
            # A writer takes its lock at once: it waits for its turn, and never fails for having read first.
            _wait_for_lock(partial(_begin_immediate, connection))
        else:
            connection.exec_driver_sql("BEGIN")

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


def _begin_immediate(connection: Connection) -> None:
    _set_timeout(connection, _SQLITE_TRY_SECONDS)
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        _set_timeout(connection, SQLITE_BUSY_SECONDS)


def _set_timeout(connection: Connection, seconds: float) -> None:
    raw: Any = connection.connection.driver_connection
    raw.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def _wait_for_lock(statement: Callable[[], object]) -> None:
    """Try a statement until others have let go of the lock that it needs, or the patience is used up."""
    deadline = time.monotonic() + SQLITE_BUSY_SECONDS
    while True:
        try:
            statement()
        except (sqlite3.OperationalError, DBAPIError) as error:
            if sqlite_code(error) not in _LOCKED or time.monotonic() > deadline:
                raise
            time.sleep(_SQLITE_PAUSE_SECONDS)
        else:
            return
