"""Short writes on the driver's own cursor, which takes a fraction of the time that SQLAlchemy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import getpid
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from sealbook.ledger.db.engine import Database

T = TypeVar("T")

Rows = list[tuple[Any, ...]]


class Driver(Protocol):
    """The means to execute a driver's statements in a transaction."""

    @property
    def dialect(self) -> str:
        """The database that it talks to."""

    def rows(self, statement: str, parameters: Sequence[Any]) -> Rows:
        """Execute a statement and return its rows."""

    def many(self, statement: str, parameters: Rows) -> None:
        """Execute a statement for each of many parameters."""

    def try_many(self, statement: str, parameters: Rows) -> bool:
        """Do the same, or nothing at all if a constraint refuses one of them; tell which it was."""


class Within:
    """The driver in a transaction that SQLAlchemy has begun."""

    def __init__(self, connection: Connection) -> None:
        self.dialect = connection.dialect.name
        self._connection = connection

    def rows(self, statement: str, parameters: Sequence[Any]) -> Rows:
        """Execute a statement and return its rows."""
        result = self._connection.exec_driver_sql(statement, tuple(parameters))
        return [tuple(row) for row in result] if result.returns_rows else []

    def many(self, statement: str, parameters: Rows) -> None:
        """Execute a statement for each of many parameters."""
        self._connection.exec_driver_sql(statement, parameters)

    def try_many(self, statement: str, parameters: Rows) -> bool:
        """Do the same, or nothing at all if a constraint refuses one of them; tell which it was."""
        try:
            with self._connection.begin_nested():
                self.many(statement, parameters)
        except IntegrityError:
            return False
        return True


class _Cursor:
    """A cursor of the driver, on a connection of its own from the pool.

    It is kept for the next write: the pool would take longer to hand out a connection than that write takes.
    """

    def __init__(self, database: Database) -> None:
        self.dialect = database.dialect
        self.refused = database.autocommit.dialect.loaded_dbapi.IntegrityError
        self.connection = database.autocommit.raw_connection()
        self.process = getpid()
        self._cursor = self.connection.cursor()

    def close(self) -> None:
        """Give the connection back to the pool, which rolls back what is left undone."""
        self.connection.close()

    def execute(self, statement: str) -> None:
        self._cursor.execute(statement)

    def roll_back(self) -> None:
        self._cursor.connection.rollback()  # which does nothing where SQLite has rolled back by itself

    def rows(self, statement: str, parameters: Sequence[Any]) -> Rows:
        found: Rows = self._cursor.execute(statement, parameters).fetchall()
        return found

    def many(self, statement: str, parameters: Rows) -> None:
        self._cursor.executemany(statement, parameters)

    def try_many(self, statement: str, parameters: Rows) -> bool:
        self.execute("SAVEPOINT many")
        try:
            self.many(statement, parameters)
        except self.refused:
            self.execute("ROLLBACK TO many")
            return False
        finally:
            self.execute("RELEASE many")
        return True


def write_idempotent(database: Database, work: Callable[[Driver], T]) -> T:
    """Do work that changes nothing when it is done again, so that even a lost commit can be repeated.

    On SQLite it is one transaction. On PostgreSQL each statement is one, and takes one round trip.
    """
    return database.repeated(lambda: _with_cursor(database, lambda cursor: _transact(cursor, work)))


def try_statement(database: Database, statement: str, parameters: Sequence[Any]) -> Rows | None:
    """Execute a statement that commits by itself, and return its rows; None if a constraint refuses it."""

    def work(cursor: _Cursor) -> Rows | None:
        try:
            return cursor.rows(statement, parameters)
        except cursor.refused:
            return None

    return database.repeated(lambda: _with_cursor(database, work))


def _with_cursor(database: Database, work: Callable[[_Cursor], T]) -> T:
    dbapi = database.autocommit.dialect.loaded_dbapi
    cursor: _Cursor | None = None
    try:
        cursor = _kept(database) or _Cursor(database)
        result = work(cursor)
    except dbapi.Error as error:
        raise _as_sqlalchemy_does(database, error, cursor) from error
    else:
        if not database.in_memory:  # where the one connection serves all
            database.kept.append(cursor)
            cursor = None
        return result
    finally:
        if cursor is not None:
            cursor.close()


def _kept(database: Database) -> _Cursor | None:
    """Return a cursor that nobody uses, if there is one."""
    try:
        cursor: _Cursor = database.kept.pop()
    except IndexError:
        return None
    if cursor.process == getpid():
        return cursor
    database.kept.append(cursor)  # from before a fork: it is the parent's
    return None


def _transact(cursor: _Cursor, work: Callable[[Driver], T]) -> T:
    if cursor.dialect == "postgresql":
        return work(cursor)
    cursor.execute("BEGIN IMMEDIATE")
    try:
        result = work(cursor)
        cursor.execute("COMMIT")
    except BaseException:
        cursor.roll_back()
        raise
    return result


def _as_sqlalchemy_does(database: Database, error: Exception, cursor: _Cursor | None) -> Exception:
    """Wrap a driver's error, so that Database can say what it means; a lost connection is not used again."""
    dialect = database.autocommit.dialect
    lost = dialect.is_disconnect(error, None if cursor is None else cursor.connection, None)  # type: ignore[arg-type]
    if lost and cursor is not None:
        cursor.connection.invalidate(error)
    return DBAPIError.instance(
        None, None, error, dialect.loaded_dbapi.Error, connection_invalidated=lost, dialect=dialect
    )
