"""A database to read, and to write with a known outcome."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from functools import partial
from threading import RLock
from typing import TypeVar

from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from sealbook.errors import SealbookError, Transient, UnknownOutcome
from sealbook.ledger.db.connecting import WRITES, make_engine
from sealbook.ledger.db.failures import sqlstate, translate
from sealbook.ledger.db.urls import answers, parse_url, printable

T = TypeVar("T")

_PAUSES_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6)  # before each further try

_POSTGRESQL_ROLLED_BACK = ("40001", "40P01")  # serialization failure, deadlock: surely not committed


class Database:
    """A connection pool that knows how to read, and how to write with a known outcome."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url = parse_url(url)
        self.dialect = self.url.get_backend_name()
        self.in_memory = self.dialect == "sqlite" and self.url.database in (None, "", ":memory:")
        self.engine = make_engine(self.url, in_memory=self.in_memory, read_only=read_only)
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
            at_one_instant._connect = partial(_in_turn, connection, RLock())  # noqa: SLF001 - of the same class
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
                may_repeat = self._unanswered(error) or sqlstate(error) in _POSTGRESQL_ROLLED_BACK
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
        with self.engine.connect().execution_options(**{WRITES: True}) as connection:
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
        return translate(
            error,
            str(self),
            self.url.database,
            is_refused=self._is_refused(error),
            is_operational=self._is_operational(error),
        )

    def _unanswered(self, error: DBAPIError) -> bool:
        """Tell whether PostgreSQL was not reached, or was lost before it said how a statement ended."""
        return self.dialect == "postgresql" and (
            error.connection_invalidated or (sqlstate(error) is None and self._is_operational(error))
        )

    def _is_refused(self, error: DBAPIError) -> bool:
        """Tell a server that would not have us from one that is not there: libpq gives no code for either.

        Once a connection was made, the URL is right, and what is wrong may pass.
        """
        return self._unanswered(error) and not self._has_connected and answers(self.url)

    def _is_operational(self, error: DBAPIError) -> bool:
        return isinstance(error.orig, self.engine.dialect.loaded_dbapi.OperationalError)


@contextmanager
def _in_turn(connection: Connection, turn: AbstractContextManager[bool]) -> Iterator[Connection]:
    """Yield a connection to one thread at a time; one that reads two streams side by side has both."""
    with turn:
        yield connection
