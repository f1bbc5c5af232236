"""Rows of pointers inside a writer's transaction.

Every writer first locks the row of warehouse_version, and holds it to its commit. So they come one after the
other, in the order of their versions, and no two of them can wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from itertools import repeat
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Executable,
    FromClause,
    Integer,
    MetaData,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    insert,
    not_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from sealbook.ledger.db.bulk import Rows, insert_rows
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.types import lines_text
from sealbook.ledger.pointers.conditions import AGREES, pointer_of, removal_of
from sealbook.ledger.pointers.locations import files_run, spelt
from sealbook.ledger.pointers.tables import (
    ARTIFACT,
    REFILED,
    STAGED,
    authority_change,
    load_record,
    pointer,
    removal,
    warehouse_version,
)
from sealbook.ledger.states.tables import partition_state
from sealbook.model.artifacts import Artifact, Staged

# Several statements work on the same rows: filled in once, they need not be parsed again for each.
batch = Table(
    "batch",
    MetaData(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    *(Column(name, load_record.c[name].type, nullable=False) for name in ARTIFACT),
    *(Column(name, load_record.c[name].type) for name in STAGED),
    prefixes=["TEMPORARY"],
    postgresql_on_commit="DROP",
)
"""The artifacts that a transaction is at work on, in their order; what was just staged is known in full."""


class Version(NamedTuple):
    """The warehouse's version, and when it was last changed."""

    number: int
    changed_at: datetime | None


def lock_version(connection: Connection) -> Version:
    """Wait until no other writer of pointers is at work, and return the warehouse's version.

    Whoever appends events locks their runs next, and reads the clock after that (R-EVT-9).
    """
    return Version(*connection.execute(_NOW.with_for_update()).one())


def time_of_pointers(connection: Connection, clock: LedgerClock) -> datetime:
    """Return the time, as a writer of pointers would find it at this moment."""
    _, changed_at = connection.execute(_NOW).one()
    return clock.now(connection, not_before=changed_at)


def set_version(connection: Connection, version: int, at: datetime) -> None:
    """Give the warehouse the version and the time of the change that this transaction makes."""
    connection.execute(update(warehouse_version).values(version=version, changed_at=at))


def fill_batch(
    connection: Connection, artifacts: Iterable[Artifact], copies: Iterable[int] | None = None
) -> None:
    """Make these artifacts, or these copies of them, the batch, in place of any before."""
    numbers = repeat(None) if copies is None else copies
    _fill(
        connection,
        [
            (position, *_identity(each), *(copy if name == "copy" else None for name in STAGED))
            for position, (each, copy) in enumerate(zip(artifacts, numbers, strict=False))
        ],
    )


def fill_batch_staged(connection: Connection, staged: Iterable[Staged]) -> None:
    """Make these artifacts, with all that is known of them, the batch."""
    _fill(
        connection,
        [
            (
                position,
                *_identity(each.artifact),
                each.record_count,
                each.bytes,
                each.digest,
                each.location,
                each.parts,
                each.format,
                each.copy,
                lines_text(each.part_digests),
                each.files_run_id,
            )
            for position, each in enumerate(staged)
        ],
    )


def record(connection: Connection, at: datetime) -> None:
    """Write the load records that artifacts of the batch do not have yet, and where newer copies lie."""
    connection.execute(_recording(connection.dialect.name), {"at": at})
    connection.execute(_REFILING)  # of the runs that share files with these


def refile(connection: Connection) -> None:
    """Note where newer copies of the batch lie, for all runs that share them, unless they are condemned."""
    connection.execute(_REFILING)


def publish(connection: Connection, version: int, at: datetime) -> None:
    """Point at the artifacts of the batch from a version on, whatever was pointed at before."""
    close(connection, version, at)
    connection.execute(_OPENING, {"version": version, "at": at})


def close(connection: Connection, version: int, at: datetime) -> None:
    """End the pointers of the batch's partitions before a version."""
    connection.execute(_CLOSING, {"version": version, "at": at})


def clear_agreed(connection: Connection) -> None:
    """Take the keys of the batch off the changed ones where state and pointer agree."""
    connection.execute(_CLEARING)


def clear_agreed_everywhere(connection: Connection) -> None:
    """Take every key off the changed ones where state and pointer agree."""
    connection.execute(_CLEARING_EVERYWHERE)


def _fill(connection: Connection, rows: Rows) -> None:
    connection.execute(CreateTable(batch, if_not_exists=True))
    connection.execute(delete(batch))
    if rows:
        insert_rows(connection, batch, rows)


def _identity(artifact: Artifact) -> tuple[Any, ...]:
    """Return the values of ARTIFACT."""
    key = artifact.key
    return (
        key.source,
        key.customer_id,
        key.query_name,
        key.logical_date,
        artifact.run_id,
        artifact.schema_version,
    )


def _agreeing(changed: FromClause) -> Select[Any]:
    """Select the ids of changes where state and pointer agree.

    One statement looks at all three. What it sees agree may change after it; but that change has a row of its
    own, which the statement has not seen, and which stays.
    """
    return (
        select(authority_change.c.id)
        .select_from(changed)
        .join(partition_state, same(partition_state, authority_change))
        .outerjoin(pointer, pointer_of(authority_change))
        .where(AGREES)
    )


@cache
def _recording(dialect: str) -> Executable:
    names = (*ARTIFACT, *STAGED)
    at = bindparam("at", type_=load_record.c.loaded_at.type)
    # In an order, without which SQLite would take ON CONFLICT for that of a join.
    values = (spelt(batch) if name == "location" else batch.c[name] for name in names)
    new = select(*values, at).order_by(batch.c.position)
    insert_into = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = insert_into(load_record).from_select((*names, "loaded_at"), new)
    newer: Executable = statement.on_conflict_do_update(
        index_elements=load_record.primary_key,
        set_={name: statement.excluded[name] for name in REFILED},
        where=and_(
            statement.excluded.copy > load_record.c.copy,
            statement.excluded.files_run_id.is_not_distinct_from(load_record.c.files_run_id),
        ),
    )
    return newer


_NOW = select(warehouse_version.c.version, warehouse_version.c.changed_at)
_REFILING = (
    update(load_record)
    .where(
        same(load_record, batch, "schema_version", "digest"),
        files_run(load_record) == files_run(batch),
        batch.c.copy > 0,  # few are
        load_record.c.copy < batch.c.copy,
        not_(select(removal.c.run_id).where(removal_of(batch), removal.c.copy >= batch.c.copy).exists()),
    )
    .values({name: batch.c[name] for name in REFILED})
)
_CLOSING = (
    update(pointer).where(pointer_of(batch)).values(valid_to=bindparam("version"), closed_at=bindparam("at"))
)
_OPENING = insert(pointer).from_select(
    (*ARTIFACT, "valid_from", "published_at"),
    select(
        *(batch.c[name] for name in ARTIFACT),
        bindparam("version", type_=BigInteger),
        bindparam("at", type_=pointer.c.published_at.type),
    ),
)
_CLEARING_EVERYWHERE = delete(authority_change).where(authority_change.c.id.in_(_agreeing(authority_change)))
_CLEARING = delete(authority_change).where(
    authority_change.c.id.in_(_agreeing(batch.join(authority_change, same(authority_change, batch))))
)
