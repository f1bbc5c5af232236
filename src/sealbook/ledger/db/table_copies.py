"""Rows of a table as both databases have them: read, written as they are, and digested."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from hashlib import sha256
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Column, Connection, Table, func, insert, select, text
from sqlalchemy.dialects.postgresql import UUID

Row = tuple[Any, ...]
"""A value for every column of a table, whichever database it is from."""

_AT_ONCE = 5_000
_ALL = 2**256
_encoder = msgspec.json.Encoder(order="sorted")


def read_pages(connection: Connection, table: Table, skip: int = 0) -> Iterator[list[Row]]:
    """Yield all rows of a table in the order of its primary key, less those to skip, page by page."""
    query = select(table).order_by(*table.primary_key).offset(skip)
    read = _conversions(connection, table, _read_value)
    with connection.execution_options(yield_per=_AT_ONCE).execute(query) as result:
        rows = (tuple(each(value) for each, value in zip(read, row, strict=True)) for row in result)
        while page := list(islice(rows, _AT_ONCE)):
            yield page


def write_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows with the numbers that they have, and let no trigger act on them."""
    with _without_triggers(connection, table):
        if connection.dialect.name != "postgresql":
            names = [each.name for each in table.c]
            connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])
            return
        names_text = ", ".join(f'"{each.name}"' for each in table.c)
        written = _conversions(connection, table, _written_value)
        # It takes the values of identity columns as they are, and is the quickest way in.
        cursor: Any = connection.connection.cursor()
        with cursor.copy(f'COPY "{table.name}" ({names_text}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row([each(value) for each, value in zip(written, row, strict=True)])


def count_rows(connection: Connection, table: Table) -> int:
    """Count the rows of a table."""
    found: int = connection.execute(select(func.count()).select_from(table)).scalar_one()
    return found


class TableDigest:
    """A digest over rows that does not depend on their order, which databases see differently."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows in."""
        self.rows += len(rows)
        for row in rows:
            content = _encoder.encode([_plain(value) for value in row])
            self._sum = (self._sum + int.from_bytes(sha256(content).digest())) % _ALL

    def __str__(self) -> str:
        return f"{self._sum:064x}"


def digest_table(connection: Connection, table: Table) -> TableDigest:
    """Return the digest of all rows of a table."""
    digest = TableDigest()
    for page in read_pages(connection, table):
        digest.add(page)
    return digest


def last_number(connection: Connection, column: Column[Any]) -> int:
    """Return the last number that a column was given by the database, of rows that have gone too."""
    table = column.table
    if connection.dialect.name == "postgresql":
        given = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {_sequence(column)}"
        found: int = connection.execute(text(given)).scalar_one()
        return found
    highest: int = connection.execute(select(func.coalesce(func.max(column), 0))).scalar_one()
    known = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    return max(highest, connection.execute(known, {"name": table.name}).scalar() or 0)


def go_on_after(connection: Connection, column: Column[Any], last: int) -> None:
    """Have the database give a column numbers after the last one."""
    if not last:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT setval(:sequence, :last)"), {"sequence": _sequence(column), "last": last}
        )
        return
    values = {"name": column.table.name, "last": last}
    connection.execute(
        text("UPDATE sqlite_sequence SET seq = :last WHERE name = :name AND seq < :last"), values
    )


def _sequence(column: Column[Any]) -> str:
    return f"{column.table.name}_{column.name}_seq"


@contextmanager
def _without_triggers(connection: Connection, table: Table) -> Iterator[None]:
    """Have no trigger of the table while the block lasts; the transaction sees to it that they come back."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f'ALTER TABLE "{table.name}" DISABLE TRIGGER USER'))
        yield
        connection.execute(text(f'ALTER TABLE "{table.name}" ENABLE TRIGGER USER'))
        return
    of_table = text("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = :table")
    triggers = connection.execute(of_table, {"table": table.name}).all()
    for name, _ in triggers:
        connection.exec_driver_sql(f"DROP TRIGGER {name}")
    yield
    for _, statement in triggers:
        connection.exec_driver_sql(statement)


Conversion = Callable[[Any], Any]


def _conversions(
    connection: Connection, table: Table, of: Callable[[Connection, Column[Any]], Conversion]
) -> list[Conversion]:
    return [of(connection, column) for column in table.c]


def _read_value(connection: Connection, column: Column[Any]) -> Conversion:
    if isinstance(column.type.dialect_impl(connection.dialect), UUID):
        return lambda value: None if value is None else uuid.UUID(str(value)).bytes
    return lambda value: value


def _written_value(connection: Connection, column: Column[Any]) -> Conversion:
    """Return how a value becomes what is copied into PostgreSQL."""
    kind = column.type.dialect_impl(connection.dialect)
    if isinstance(kind, UUID):
        return lambda value: None if value is None else str(uuid.UUID(bytes=value))
    process = column.type.bind_processor(connection.dialect) or kind.bind_processor(connection.dialect)

    def convert(value: Any) -> Any:
        bound = value if process is None else process(value)
        return str.__str__(bound) if isinstance(bound, str) else bound

    return convert


def _plain(value: Any) -> Any:
    """Return a value as something that is encoded in one way only."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case bytes() | memoryview():
            return bytes(value).hex()
        case str():
            return str.__str__(value)
        case float():
            return int(value) if value.is_integer() else value  # PostgreSQL's JSON has 1e16 in full
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value
