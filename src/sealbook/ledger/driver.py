"""Short writes on the driver's own cursor, which takes a fraction of the time that SQLAlchemy does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sqlalchemy import Connection, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError

from sealbook.ledger.engine import Database

T = TypeVar("T")

Execute = Callable[[str, Any], Iterable[Any]]
"""Execute a statement with parameters, or with a list of them, and return its rows."""


def within(connection: Connection) -> Execute:
    """Return the means to execute in a transaction that SQLAlchemy has begun."""

    def execute(statement: str, parameters: Any) -> Iterable[Any]:
        result = connection.exec_driver_sql(statement, parameters)
        return result.all() if result.returns_rows else ()

    return execute


def write_idempotent(database: Database, work: Callable[[Execute], T]) -> T:
    """Do work that changes nothing when it is done again, so that even a lost commit can be repeated.

    On SQLite it is one transaction. On PostgreSQL each statement is one, and takes one round trip.
    """
    return database.repeated(lambda: _write_once(database, work))


def _write_once(database: Database, work: Callable[[Execute], T]) -> T:
    connection: PoolProxiedConnection | None = None
    try:
        connection = database.autocommit.raw_connection()
        return _transact(database.dialect, connection, work)
    except database.autocommit.dialect.loaded_dbapi.Error as error:
        raise _as_sqlalchemy_does(database, error, connection) from error
    finally:
        if connection is not None:
            connection.close()


def _transact(dialect: str, connection: PoolProxiedConnection, work: Callable[[Execute], T]) -> T:
    cursor: Any = connection.cursor()

    def execute(statement: str, parameters: Any) -> Iterable[Any]:
        if isinstance(parameters, list):
            cursor.executemany(statement, parameters)
            return ()
        rows: list[Any] = cursor.execute(statement, parameters).fetchall()
        return rows

    if dialect == "postgresql":
        return work(execute)
    cursor.execute("BEGIN IMMEDIATE")
    try:
        result = work(execute)
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
    return result


def _as_sqlalchemy_does(
    database: Database, error: Exception, connection: PoolProxiedConnection | None
) -> Exception:
    """Wrap a driver's error, so that Database can say what it means; a lost connection is not used again."""
    dialect = database.autocommit.dialect
    lost = dialect.is_disconnect(error, connection, None)  # type: ignore[arg-type]
    if lost and connection is not None:
        connection.invalidate(error)
    return DBAPIError.instance(
        None, None, error, dialect.loaded_dbapi.Error, connection_invalidated=lost, dialect=dialect
    )
