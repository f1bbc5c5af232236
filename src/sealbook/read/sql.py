"""SQL over what is published, by DuckDB, in this process: every configured query is a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import duckdb
import pyarrow as pa

from sealbook.config import SourceSettings
from sealbook.config.console import MASK
from sealbook.errors import InvalidInput, Permanent, first_line
from sealbook.ledger.pointers import PublishedReader
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Query
from sealbook.read.dataset import published_dataset
from sealbook.read.sandbox import Sandbox
from sealbook.read.scanning import PlannedDataset
from sealbook.read.schema import (
    KEY_TYPES,
    all_columns,
    arrow_schema,
    irreconcilable,
    reconcilable,
)
from sealbook.warehouse.part_files import PartFiles

_WORD = re.compile(r"\w+")
DuckSettings = dict[str, str | bool | int | float | list[str]]
_SETTINGS: DuckSettings = {
    # Tables are those of the book: no variable of the caller is one, and nothing is fetched from elsewhere.
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
}
# Nothing is changed by asking: neither what a statement could write to, nor the settings above. A pivot is
# of several statements.
_QUESTIONS = [[duckdb.StatementType.SELECT], [duckdb.StatementType.EXPLAIN], [duckdb.StatementType.MULTI]]


def run_sql(
    text: str,
    pointers: PublishedReader,
    sources: Mapping[str, SourceSettings],
    files: PartFiles,
    *,
    strict: bool = False,
    cut: str | None = None,
    lineage: bool = False,
) -> pa.Table:
    """Answer a question in SQL. Of tables, only what its filters let through is planned, each by itself.

    So the pointers must be those of a snapshot. Irreconcilable if it asks for a column whose types in
    several versions have no common one.
    """
    return _run(text, pointers, sources, files, None, strict=strict, cut=cut, lineage=lineage)[0]


def run_sandboxed(
    text: str,
    pointers: PublishedReader,
    sources: Mapping[str, SourceSettings],
    files: PartFiles,
    sandbox: Sandbox,
    *,
    strict: bool = False,
    cut: str | None = None,
) -> tuple[pa.Table, bool]:
    """Answer within a sandbox; return the first rows, and whether there are more.

    Forbidden if the question reaches for anything but published tables. How long it takes, and what memory
    besides DuckDB's own, is for the caller to bound: it may run in a process of its own.
    """
    return _run(text, pointers, sources, files, sandbox, strict=strict, cut=cut, lineage=False)


def _run(
    text: str,
    pointers: PublishedReader,
    sources: Mapping[str, SourceSettings],
    files: PartFiles,
    sandbox: Sandbox | None,
    *,
    strict: bool,
    cut: str | None,
    lineage: bool,
) -> tuple[pa.Table, bool]:
    mentioned = _mentioned(text, sources)
    lost = [(query, name) for query in mentioned for name in all_columns(query).keys() - reconcilable(query)]
    offered: list[PlannedDataset] = []
    settings = _SETTINGS if sandbox is None else _SETTINGS | sandbox.settings
    with duckdb.connect(":memory:", config=settings) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")  # which would be drawn on stdout
        for query in mentioned:
            own = all_columns(query).keys() - KEY_TYPES.keys()
            masked = sandbox.masks(query.name, own) if sandbox else frozenset[str]()
            rows = published_dataset(
                pointers, query, files, masked=masked, strict=strict, cut=cut, lineage=lineage, question=text
            )
            offered.append(rows)
            _offer(connection, query, rows, masked, alone=_is_alone(query, sources))
        connection.execute("SET lock_configuration = true")
        try:
            if sandbox is not None:
                sandbox.check(connection, text, _names(mentioned, sources))
            if [each.type for each in connection.extract_statements(text)] not in _QUESTIONS:
                raise InvalidInput.of("SQL", text, "one question, such as select")
            if lost:
                _check_not_in_a_star(text, connection.sql(text).columns, lost, sources, settings)
            return _answer(connection, text, offered, sandbox)
        except duckdb.CatalogException as error:
            raise InvalidInput(first_line(error), field="SQL", remedy=_tables(sources)) from error
        except (duckdb.ProgrammingError, duckdb.DataError) as error:
            if isinstance(error, duckdb.BinderException):
                _check_not_named(text, lost, error)
            remedy = _hint(error) or f"Ask in the SQL of DuckDB. {_tables(sources)}"
            raise InvalidInput(first_line(error), field="SQL", remedy=remedy) from error
        except duckdb.Error as error:
            raise Permanent(first_line(error)) from error


def _answer(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    offered: list[PlannedDataset],
    sandbox: Sandbox | None,
) -> tuple[pa.Table, bool]:
    """Ask; an artifact that cannot be read is told as such, and not in DuckDB's words."""
    try:
        found = connection.sql(text)
        return (found.to_arrow_table(), False) if sandbox is None else sandbox.fetch(found)
    except duckdb.Error as error:
        for each in offered:
            if each.failure is not None:
                raise each.failure from error
            if isinstance(error, duckdb.InvalidInputException):  # so DuckDB tells of a scan that broke off
                each.find_damage()
        raise


def _check_not_named(text: str, lost: Sequence[tuple[Query, str]], error: duckdb.Error) -> None:
    """Say why a column is not there, if one that cannot be read is named in the text."""
    words = _words(text)
    for query, name in lost:
        if name in words:
            raise irreconcilable(query, name) from error


def _check_not_in_a_star(
    text: str,
    columns: Sequence[str],
    lost: Sequence[tuple[Query, str]],
    sources: Mapping[str, SourceSettings],
    settings: DuckSettings,
) -> None:
    """Refuse an answer that lacks a column for which a `*` asks: one that would be there if it could be."""
    with duckdb.connect(":memory:", config=settings) as connection:
        for query in _mentioned(text, sources):
            schema = {name: each or ColumnType.STRING for name, each in all_columns(query).items()}
            _offer(connection, query, arrow_schema(schema).empty_table(), alone=_is_alone(query, sources))
        try:
            whole = Counter(connection.sql(text).columns)
        except duckdb.Error:
            return  # what cannot be asked of text has named the column, and would have failed before
        whole.subtract(columns)
        for query, name in lost:
            if whole[name] > 0:
                raise irreconcilable(query, name)


def _mentioned(text: str, sources: Mapping[str, SourceSettings]) -> list[Query]:
    """Return every query whose name is in the text: one that is there by chance is offered and not read."""
    words = _words(text)
    return [query for each in sources.values() for name, query in each.queries.items() if name in words]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _offer(
    connection: duckdb.DuckDBPyConnection,
    query: Query,
    rows: PlannedDataset | pa.Table,
    masked: Collection[str] = (),
    *,
    alone: bool,
) -> None:
    """Make a query a table by its name, `source.query`; and by its short name if no other source has it.

    Columns that are masked are there in name alone.
    """
    registered = f"__{query.source}__{query.name}"
    connection.register(registered, rows)
    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{query.source}"')
    names = [f'"{query.source}"."{query.name}"'] + ([f'"{query.name}"'] if alone else [])
    columns = ", ".join(["*", *(f"'{MASK}' AS \"{each}\"" for each in sorted(masked))])
    for name in names:
        connection.execute(f'CREATE VIEW {name} AS SELECT {columns} FROM "{registered}"')


def _names(queries: Iterable[Query], sources: Mapping[str, SourceSettings]) -> set[str]:
    """Return the names of queries as tables."""
    found = set()
    for query in queries:
        found.add(f"{query.source}.{query.name}")
        if _is_alone(query, sources):
            found.add(query.name)
    return found


def _hint(error: duckdb.Error) -> str:
    """Return what DuckDB advises, which stands between what is wrong and the line that is quoted."""
    _, *advice = str(error).partition("\n\n")[0].splitlines()
    return " ".join(advice)


def _is_alone(query: Query, sources: Mapping[str, SourceSettings]) -> bool:
    return sum(query.name in each.queries for each in sources.values()) == 1


def _tables(sources: Mapping[str, SourceSettings]) -> str:
    names = [
        query.name if _is_alone(query, sources) else f"{query.source}.{query.name}"
        for each in sources.values()
        for query in each.queries.values()
    ]
    return f"Tables: {', '.join(names) or 'none; the configuration has no query'}."
