"""A whole ledger copied into another database: every table, verified, and gone on with if it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import Column, Connection, Table, Text, delete, func, insert, inspect, select

from sealbook.errors import ConfigError, Corrupt
from sealbook.ledger.db import schema
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.table_copies import (
    TableDigest,
    count_rows,
    digest_table,
    go_on_after,
    last_number,
    read_pages,
    write_rows,
)
from sealbook.ledger.db.tables import metadata
from sealbook.ledger.events.tables import newest_run, run_event
from sealbook.ledger.pointers.tables import warehouse_version
from sealbook.ledger.work.tables import lane_pass

_SEEDED = (newest_run, warehouse_version, lane_pass)
"""Tables that have rows as soon as they are made: these are replaced."""

_MARK = Table("ledger_copy", metadata.__class__(), Column("source", Text, nullable=False))
"""Is in the target while the copy is not whole: it names what is being copied, and when that was."""

_EMPTY_REMEDY = "Copy into a new database; what was copied by half of another ledger cannot be gone on with."


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table that is in the other database, as it is here."""

    table: str
    rows: int
    digest: str


OnRows = Callable[[str, int], None]
"""Hears how many more rows of a table are copied."""


def copy_ledger(
    source_url: str, target_url: str, on_rows: OnRows = lambda _table, _rows: None
) -> list[CopiedTable]:
    """Copy a ledger of this revision into an empty database, verify it there, and return what there is.

    A copy that was stopped goes on, unless the ledger has changed since. Nothing else may write to either.
    """
    with closing(Database(source_url, read_only=True)) as source, closing(Database(target_url)) as target:
        schema.check_version(source)
        schema.bring_to_head(target)
        with source.snapshot() as at_one_instant:
            with at_one_instant.read() as connection:
                target.write(lambda there: _claim(there, str(target), _name(str(source), connection)))
            digests = {table.name: _copy(at_one_instant, target, table, on_rows) for table in _tables()}
            with at_one_instant.read() as connection:
                numbers = [(column, last_number(connection, column)) for column in _numbered()]
        copied = [_verified(target, table, digests[table.name]) for table in _tables()]
        with source.read() as connection:
            name = _name(str(source), connection)
        target.write(lambda there: _finish(there, numbers, str(source), name))
    return copied


def _tables() -> list[Table]:
    return sorted(metadata.tables.values(), key=lambda table: table.name)


def _numbered() -> Iterator[Column[object]]:
    """Yield the columns that the database numbers."""
    yield run_event.c.position
    for table in _tables():
        yield from (column for column in table.c if column.identity is not None)


def _name(source: str, connection: Connection) -> str:
    """Return what stands for a ledger at an instant."""
    position = connection.execute(select(func.max(run_event.c.position))).scalar()
    return f"{source} at position {position or 0}"


def _claim(connection: Connection, target: str, name: str) -> None:
    """Mark an empty target as this copy's; refuse one that is not empty, or another copy's."""
    schema.wait_for_turn(connection)
    if inspect(connection).has_table(_MARK.name):
        found = connection.execute(select(_MARK.c.source)).scalar()
        if found != name:
            raise ConfigError(
                f"{target} has a part of another copy: of {found}, and this is {name}", remedy=_EMPTY_REMEDY
            )
        return
    filled = [table.name for table in _tables() if table not in _SEEDED and count_rows(connection, table)]
    if filled or connection.execute(select(warehouse_version.c.version)).scalar_one():
        raise ConfigError(f"{target} is not empty: it has rows in {', '.join(filled)}", remedy=_EMPTY_REMEDY)
    _MARK.create(connection)
    connection.execute(insert(_MARK).values(source=name))
    for table in _SEEDED:
        connection.execute(delete(table))


def _copy(source: Database, target: Database, table: Table, on_rows: OnRows) -> TableDigest:
    """Copy the rows of a table that are not there yet, and return the digest of all."""
    with target.read() as connection:
        there = count_rows(connection, table)
    digest = TableDigest()
    with source.read() as connection:
        for page in read_pages(connection, table):
            new = page[max(there - digest.rows, 0) :]
            digest.add(page)
            if new:
                target.write(lambda other, rows=new: write_rows(other, table, rows))  # type: ignore[misc]
            on_rows(table.name, len(page))
    return digest


def _verified(target: Database, table: Table, digest: TableDigest) -> CopiedTable:
    with target.read() as connection:
        found = digest_table(connection, table)
    if (found.rows, str(found)) != (digest.rows, str(digest)):
        raise Corrupt(
            f"{table.name} is another in {target}: {found.rows:,} rows with digest {found},"
            f" and here {digest.rows:,} with {digest}",
            remedy="Let nothing write to either ledger meanwhile, and copy into a new database.",
        )
    return CopiedTable(table.name, digest.rows, str(digest))


def _finish(
    connection: Connection, numbers: list[tuple[Column[object], int]], source: str, name: str
) -> None:
    """Let the target go on counting, and take the mark away; refuse if the source has gone on meanwhile."""
    if connection.execute(select(_MARK.c.source)).scalar() != name:
        raise ConfigError(
            f"{source} was written to while it was copied",
            remedy=f"Stop whatever works on it. {_EMPTY_REMEDY}",
        )
    for column, last in numbers:
        go_on_after(connection, column, last)
    _MARK.drop(connection)
