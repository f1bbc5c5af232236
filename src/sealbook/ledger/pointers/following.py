"""A pointer that follows an operator's choice of a run, in the transaction of that choice (R-WH-9)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, not_, select

from sealbook.ledger.db.queries import at_key
from sealbook.ledger.pointers import rows
from sealbook.ledger.pointers.conditions import OPEN, TAKEN, removal_of
from sealbook.ledger.pointers.hiding import Unsafe, hide
from sealbook.ledger.pointers.locations import loaded
from sealbook.ledger.pointers.tables import STAGED, load_record, pointer, removal
from sealbook.model import PartitionKey, Status
from sealbook.model.artifacts import Artifact, Staged
from sealbook.model.partition_events import PartitionFact, PartitionPublished


def is_there(connection: Connection, artifact: Artifact, record_count: int) -> bool:
    """Say whether an artifact of so many records is staged, and no clean-up takes it away."""
    return _staged(connection, artifact, record_count) is not None


def pointed(connection: Connection, key: PartitionKey) -> Artifact | None:
    """Return the artifact that is published of a partition."""
    found = connection.execute(select(pointer).where(*at_key(pointer, key), OPEN)).one_or_none()
    return None if found is None else Artifact(key, found.run_id, found.schema_version)


def follow(
    connection: Connection, artifact: Artifact, record_count: int, version: int, at: datetime
) -> list[PartitionFact]:
    """Point at an artifact if it is there, and else at nothing; return what changed, as facts.

    `version` is the warehouse's, which the caller has locked.
    """
    before = pointed(connection, artifact.key)
    found = _staged(connection, artifact, record_count)
    if before == artifact:
        return []
    version += 1
    if found is not None:
        rows.set_version(connection, version, at)
        staged = Staged(artifact, **{name: getattr(found, name) for name in STAGED})
        rows.fill_batch_staged(connection, [staged])
        rows.publish(connection, version, at)
        replaced = None if before is None else before.run_id
        return [PartitionPublished.of(staged, version, replaced, again=True)]
    if before is None:
        return []
    rows.set_version(connection, version, at)
    return list(hide(connection, [Unsafe(before, Status.SUCCESS)], version, at))


def _staged(connection: Connection, artifact: Artifact, record_count: int) -> Row[Any] | None:
    query = (
        select(*loaded(STAGED))
        .outerjoin(removal, removal_of(load_record))
        .where(
            *at_key(load_record, artifact.key),
            load_record.c.run_id == artifact.run_id,
            load_record.c.schema_version == artifact.schema_version,
            load_record.c.record_count == record_count,
            not_(TAKEN),
        )
    )
    return connection.execute(query).one_or_none()
