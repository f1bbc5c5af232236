"""Many rows in few statements, the quick way of each database.

PostgreSQL takes the rows as one JSON parameter and works on them as a table. SQLite reads keys the same way,
but parses JSON once for each column, so wide rows go through the driver's executemany, which is quick there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    CursorResult,
    Date,
    Executable,
    FromClause,
    Insert,
    Table,
    Text,
    Update,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
    type_coerce,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import JSONB

from sealbook.ledger.db.row_statements import RowStatement, Values
from sealbook.ledger.db.types import (
    RunIdText,
    Sha256,
    StatusName,
    UtcTimestamp,
    day_text,
    json_text,
    microseconds,
)

Rows = Sequence[Sequence[Any]]
"""Rows with a value for every column of a table, in the table's order."""

OR_FAIL = "OR FAIL"
"""For SQLite, where a refused row ends the whole transaction: then no journal is kept for each statement."""

# PostgreSQL takes at most 256 MB of JSON in one parameter, and its arrays have bounds of their own.
_ROWS_A_STATEMENT = 5_000
_CHARACTERS_A_STATEMENT = 50_000_000


def given_rows(dialect: str, columns: Iterable[Column[Any]], parameter: str = "rows") -> FromClause:
    """Return the rows of a parameter as a table with the names and types of the given columns."""
    rows = bindparam(parameter, type_=Text)
    name = f"given_{parameter}"
    if dialect == "postgresql":
        return (
            func.jsonb_to_recordset(cast(rows, JSONB))
            .table_valued(*(column(each.name, each.type) for each in columns))
            .render_derived(name=name, with_types=True)
        )
    row = func.json_each(rows).table_valued(column("value"), name="row")
    return select(
        *(
            type_coerce(func.json_extract(row.c.value, f"$.{each.name}"), each.type).label(each.name)
            for each in columns
        )
    ).subquery(name)


def encode_rows(rows: Iterable[Mapping[str, Any]], parameter: str = "rows") -> dict[str, str]:
    """Return the parameter that `given_rows` reads."""
    return {parameter: json_text(list(rows))}


def insert_rows(connection: Connection, table: Table, rows: Rows) -> None:
    """Insert rows."""
    if connection.dialect.name == "postgresql":
        _execute_given(connection, _insert_given(table), table, rows)
    else:
        _execute_each(connection, _insert_each(table), table, rows)


def insert_missing_rows(connection: Connection, table: Table, rows: Rows) -> int:
    """Insert those rows whose primary keys are not there yet, and return how many they are.

    Where another transaction is about to insert one of them, this waits until it has, or has not.
    """
    if connection.dialect.name != "postgresql":
        return _execute_each(connection, _insert_missing_each(table), table, rows).rowcount
    return sum(len(page.all()) for page in _execute_given(connection, _insert_missing(table), table, rows))


def update_rows(connection: Connection, table: Table, rows: Rows, columns: tuple[str, ...]) -> None:
    """Update these columns of the rows that have these primary keys."""
    if connection.dialect.name == "postgresql":
        _execute_given(connection, _update_given(table, columns), table, rows)
    else:
        _execute_each(connection, _update_each(table, columns), table, rows)


def upsert_rows(connection: Connection, table: Table, rows: Rows, columns: tuple[str, ...]) -> None:
    """Insert rows; where a primary key is there already, update these columns of its row."""
    if connection.dialect.name == "postgresql":
        _execute_given(connection, _upsert_given(table, columns), table, rows)
    else:
        _execute_each(connection, _upsert_each(table, columns), table, rows)


def _execute_given(
    connection: Connection, statement: Executable, table: Table, rows: Rows
) -> list[CursorResult[Any]]:
    names = [each.name for each in table.c]
    converted = _converted(table, _in_json, rows)
    texts = [json_text(dict(zip(names, row, strict=True))) for row in converted]
    return [
        connection.execute(statement, {"rows": json_text([msgspec.Raw(text) for text in page])})
        for page in _pages(texts)
    ]


def _pages(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut texts into pages that one statement can take."""
    start = room = 0
    for end, text in enumerate(texts):
        if end > start and (len(text) > room or end - start == _ROWS_A_STATEMENT):
            yield texts[start:end]
            start = end
        if start == end:
            room = _CHARACTERS_A_STATEMENT
        room -= len(text)
    if texts:
        yield texts[start:]


@cache
def _insert_given(table: Table) -> Executable:
    rows = given_rows("postgresql", table.c)
    return insert(table).from_select([each.name for each in table.c], select(*rows.c))


@cache
def _insert_missing(table: Table) -> Executable:
    rows = given_rows("postgresql", table.c)
    new = postgresql.insert(table).from_select([each.name for each in table.c], select(*rows.c))
    inserted = new.on_conflict_do_nothing(index_elements=table.primary_key)
    return inserted.returning(*list(table.primary_key)[:1])


@cache
def _upsert_given(table: Table, columns: tuple[str, ...]) -> Executable:
    rows = given_rows("postgresql", table.c)
    new = postgresql.insert(table).from_select([each.name for each in table.c], select(*rows.c))
    changes = {name: new.excluded[name] for name in columns}
    return new.on_conflict_do_update(index_elements=table.primary_key, set_=changes)


@cache
def _update_given(table: Table, columns: tuple[str, ...]) -> Executable:
    rows = given_rows("postgresql", table.c)
    same = [each == rows.c[each.name] for each in table.primary_key]
    return update(table).where(*same).values({name: rows.c[name] for name in columns})


@cache
def _insert_each(table: Table) -> RowStatement:
    return RowStatement(table, lambda values: insert(table).prefix_with(OR_FAIL).values(values))


@cache
def _insert_missing_each(table: Table) -> RowStatement:
    return RowStatement(table, lambda values: sqlite.insert(table).values(values).on_conflict_do_nothing())


@cache
def _update_each(table: Table, columns: tuple[str, ...]) -> RowStatement:
    def build(values: Values) -> Update:
        same = [each == values[each.name] for each in table.primary_key]
        changes = {name: values[name] for name in columns}
        return update(table).prefix_with(OR_FAIL).where(*same).values(changes)

    return RowStatement(table, build)


@cache
def _upsert_each(table: Table, columns: tuple[str, ...]) -> RowStatement:
    def build(values: Values) -> Insert:
        statement = sqlite.insert(table).prefix_with(OR_FAIL).values(values)
        changes = {name: statement.excluded[name] for name in columns}
        return statement.on_conflict_do_update(index_elements=table.primary_key, set_=changes)

    return RowStatement(table, build)


def _execute_each(
    connection: Connection, statement: RowStatement, table: Table, rows: Rows
) -> CursorResult[Any]:
    text, parameters = statement.prepare(_converted(table, _on_sqlite, rows))
    return connection.exec_driver_sql(text, parameters)


Conversion = Callable[[Any], Any]
"""How a value becomes what is handed to the database."""


def _converted(table: Table, of: Callable[[Column[Any]], Conversion | None], rows: Rows) -> Rows:
    """Return rows with the values that a database is handed."""
    conversions = _conversions(table, of)
    if not conversions:
        return rows
    converted = [list(row) for row in rows]
    for values in converted:
        for index, convert in conversions:
            if values[index] is not None:
                values[index] = convert(values[index])
    return converted


@cache
def _conversions(
    table: Table, of: Callable[[Column[Any]], Conversion | None]
) -> list[tuple[int, Conversion]]:
    conversions = ((index, of(each)) for index, each in enumerate(table.c))
    return [(index, convert) for index, convert in conversions if convert is not None]


def _on_sqlite(each: Column[Any]) -> Conversion | None:
    """Return how a column's values become what SQLite stores; None where they are stored as they are."""
    match each.type:
        case UtcTimestamp():
            return microseconds
        case Date():
            return day_text
        case JSON():
            return json_text
        case Sha256():
            return bytes.fromhex
        case RunIdText() | StatusName():
            return str.__str__  # the text alone: the driver is slow at subclasses of str
    return None


def _in_json(each: Column[Any]) -> Conversion | None:
    """Return how a column's values become what PostgreSQL reads off JSON; None where they are so already."""
    return "\\x{}".format if isinstance(each.type, Sha256) else None
