"""Rows of pointers inside a writer's transaction.

Every writer first locks the row of warehouse_version, and holds it to its commit. So they come one after the
other, in the order of their versions, and no two of them can wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Executable,
    FromClause,
    Integer,
    MetaData,
    Select,
    Table,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from sealbook.ledger.db.bulk import Rows, insert_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.pointers.conditions import AGREES, changed_keys, pointer_of
from sealbook.ledger.pointers.tables import (
    ARTIFACT,
    STAGED,
    authority_change,
    load_record,
    pointer,
    warehouse_version,
)
from sealbook.ledger.states.tables import partition_state
from sealbook.model import PartitionKey
from sealbook.model.partition_events import PartitionHidden
from sealbook.model.publication import Artifact, Staged
from sealbook.model.selection import Selection

# Several statements work on the same rows: filled in once, they need not be parsed again for each.
batch = Table(
    "batch",
    MetaData(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    *(Column(name, load_record.c[name].type, nullable=False) for name in ARTIFACT),
    *(Column(name, load_record.c[name].type) for name in STAGED),
    Column("planned_version", BigInteger),
    prefixes=["TEMPORARY"],
    postgresql_on_commit="DROP",
)
"""The artifacts that a transaction is at work on, in their order; what was just staged is known in full."""


def lock_version(connection: Connection) -> int:
    """Wait until no other writer of pointers is at work, and return the warehouse's version."""
    version: int = connection.execute(select(warehouse_version.c.version).with_for_update()).scalar_one()
    return version


def set_version(connection: Connection, version: int) -> None:
    """Give the warehouse the version of the change that this transaction makes."""
    connection.execute(update(warehouse_version).values(version=version))


def fill_batch(connection: Connection, artifacts: Iterable[Artifact]) -> None:
    """Make these artifacts the batch, in place of any before."""
    unknown = (None,) * (len(STAGED) + 1)
    _fill(connection, [(position, *_identity(each), *unknown) for position, each in enumerate(artifacts)])


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
                each.planned_version,
            )
            for position, each in enumerate(staged)
        ],
    )


def record(connection: Connection, at: datetime) -> None:
    """Write the load records that artifacts of the batch do not have yet."""
    connection.execute(_recording(connection.dialect.name), {"at": at})


def publish(connection: Connection, version: int, at: datetime) -> None:
    """Point at the artifacts of the batch from a version on, whatever was pointed at before."""
    close(connection, version, at)
    connection.execute(_OPENING, {"version": version, "at": at})


def close(connection: Connection, version: int, at: datetime) -> None:
    """End the pointers of the batch's partitions before a version."""
    connection.execute(_CLOSING, {"version": version, "at": at})


def hide(
    connection: Connection, unsafe: ColumnElement[bool], selection: Selection, version: int, at: datetime
) -> list[PartitionHidden]:
    """End the pointers that are unsafe before a version, and return that as facts."""
    changed = changed_keys(connection.dialect.name, selection)
    query = (
        select(*changed.c, pointer.c.run_id, pointer.c.schema_version, partition_state.c.status)
        .join(partition_state, same(partition_state, changed))
        .join(pointer, pointer_of(changed))
        .where(unsafe)
        .order_by(*changed.c)
    )
    found = connection.execute(query).all()
    if found:
        fill_batch(
            connection,
            (Artifact(PartitionKey(*row[:4]), row.run_id, row.schema_version) for row in found),
        )
        close(connection, version, at)
    return [
        PartitionHidden(
            key=PartitionKey(*row[:4]), run_id=row.run_id, attempt=str(version), status=row.status
        )
        for row in found
    ]


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
    new = select(*(batch.c[name] for name in names), at).order_by(batch.c.position)
    insert_into = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement: Executable = (
        insert_into(load_record).from_select((*names, "loaded_at"), new).on_conflict_do_nothing()
    )
    return statement


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
