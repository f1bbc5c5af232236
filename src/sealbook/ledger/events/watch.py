"""Waiting for events: by notification on PostgreSQL, by looking again on SQLite."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import inf
from typing import Any, TypeVar

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.port import Watch

T = TypeVar("T")

POLL_SECONDS = 0.05

LISTEN_SECONDS = 1.0
"""How long a follower on PostgreSQL sleeps at most before it looks by itself."""

_IN_FLIGHT_SECONDS = 0.02

# A follower holds the wake-up lock while it sleeps: an append that finds it held sends a notification.
_WAKE_UP = "'run_event'::regclass::oid::bigint << 32"
_LISTEN = text("LISTEN run_event")
_TAKE_WAKE_UP = text(f"SELECT pg_try_advisory_lock_shared({_WAKE_UP})")
_LEAVE_WAKE_UP = text(f"SELECT pg_advisory_unlock_shared({_WAKE_UP})")
_IN_FLIGHT = text("SELECT in_flight FROM run_feed_horizon()")


@contextmanager
def watch(database: Database) -> Iterator[Watch]:
    """Watch for events while the block lasts."""
    if database.dialect != "postgresql":
        yield Polling()
        return
    listening = _Listening(database)
    try:
        yield listening
    finally:
        listening.close()


def follow(
    watching: AbstractContextManager[Watch], look: Callable[[T | None], list[T]], patience: float | None
) -> Iterator[T]:
    """Yield what `look` finds after the last thing that was found, and then wait for more.

    It waits for ever, or until `patience` seconds have passed with nothing new.
    """
    last: T | None = None
    seconds = inf if patience is None else patience
    with watching as watch:
        while True:
            waiting_since = time.monotonic()
            while not (found := look(last)):
                left = waiting_since + seconds - time.monotonic()
                if left <= 0:
                    return
                watch.rest(found=False, at_most=left)
            watch.rest(found=True, at_most=0)
            yield from found
            last = found[-1]


class Polling:
    """Looks again after a moment: the watch of a store that cannot say when something comes."""

    def rest(self, *, found: bool, at_most: float) -> None:
        """Wait a moment, unless there was something to do."""
        if not found:
            time.sleep(min(POLL_SECONDS, at_most))


class _Listening:
    """Sleeps until it is woken, and only if no append can go unnoticed.

    It takes the wake-up lock, sees whether appends are in flight, and lets the reader look once more. An
    append that did not find that lock held had announced its positions before: either it has ended, and that
    look finds it, or it was seen in flight, and the sleep is a short one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._holds_wake_up = False
        self._in_flight = False

    def rest(self, *, found: bool, at_most: float) -> None:
        """Sleep until an append wakes it, unless there was something to do."""
        try:
            self._rest(found, at_most)
        except (DBAPIError, self._database.engine.dialect.loaded_dbapi.Error):
            # Being woken is a convenience. If the database is gone for good, the reader's next look says so.
            self.close()
            time.sleep(min(LISTEN_SECONDS, at_most))

    def _rest(self, found: bool, at_most: float) -> None:
        connection = self._connection or self._open()
        if found:
            self._leave_wake_up(connection)
            return
        if self._holds_wake_up:
            driver: Any = connection.connection.dbapi_connection
            seconds = _IN_FLIGHT_SECONDS if self._in_flight else LISTEN_SECONDS
            if list(driver.notifies(timeout=min(seconds, at_most), stop_after=1)):
                self._leave_wake_up(connection)
                return
        else:
            self._holds_wake_up = connection.execute(_TAKE_WAKE_UP).scalar_one()
            if not self._holds_wake_up:  # an append is looking at it just now
                time.sleep(min(_IN_FLIGHT_SECONDS, at_most))
        self._in_flight = connection.execute(_IN_FLIGHT).scalar_one()

    def _leave_wake_up(self, connection: Connection) -> None:
        if self._holds_wake_up:
            connection.execute(_LEAVE_WAKE_UP)
            self._holds_wake_up = False

    def _open(self) -> Connection:
        connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # what it listens to and holds ends with it, not with the pool
        connection.execute(_LISTEN)
        self._connection = connection
        return connection

    def close(self) -> None:
        """Stop listening."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._holds_wake_up = False
