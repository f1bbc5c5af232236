"""What queries share: rows that stream, and conditions that pick partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, starmap
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, FromClause, Row, Select, and_

from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import KEY
from sealbook.model import PartitionKey

T = TypeVar("T")

_PAGE = 2_000  # rows fetched at a time while streaming


def stream(database: Database, query: Select[Any], make: Callable[..., T]) -> Iterator[T]:
    """Make a value of each row while the rows come in, all as of the instant when the first was asked for."""
    return chain.from_iterable(starmap(make, page) for page in _pages(database, query))


def at_key(table: FromClause, key: PartitionKey) -> list[ColumnElement[bool]]:
    """Return the conditions that pick one partition's rows of a table."""
    return [table.c[name] == getattr(key, name) for name in KEY]


def same(left: FromClause, right: FromClause, *columns: str) -> ColumnElement[bool]:
    """Say that two rows are of the same partition, and agree in further columns."""
    return and_(*(left.c[name] == right.c[name] for name in (*KEY, *columns)))


def _pages(database: Database, query: Select[Any]) -> Iterator[Sequence[Row[Any]]]:
    if database.in_memory:
        # Its one connection must be free again before the caller goes on.
        with database.read() as connection:
            everything = connection.execute(query).all()
        yield everything
        return
    with database.read() as connection:
        paged = connection.execution_options(yield_per=_PAGE)
        with paged.execute(query) as rows:  # a server's cursor is closed also when the reader stops early
            yield from rows.partitions()
