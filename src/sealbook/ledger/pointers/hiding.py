"""Hiding: pointers that readers must not see any more come to an end (R-WH-5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, select

from sealbook.ledger.db.queries import same
from sealbook.ledger.pointers import rows
from sealbook.ledger.pointers.conditions import STATUS, changed_keys, pointer_of
from sealbook.ledger.pointers.tables import pointer
from sealbook.ledger.states.tables import partition_state
from sealbook.model import PartitionKey, Status
from sealbook.model.artifacts import Artifact
from sealbook.model.partition_events import PartitionHidden
from sealbook.model.selection import Selection


class Unsafe(NamedTuple):
    """A pointer that readers must not see, and the status of its partition."""

    artifact: Artifact
    status: Status


def find_unsafe(
    connection: Connection, unsafe: ColumnElement[bool], selection: Selection, *, full: bool
) -> list[Unsafe]:
    """Return the pointers that are unsafe, in key order, where an authority was noted as changed.

    With `full`, everything is compared, whatever is noted (R-WH-8).
    """
    changed = changed_keys(connection.dialect.name, selection, full=full)
    query = (
        select(*changed.c, pointer.c.run_id, pointer.c.schema_version, STATUS)
        .select_from(changed)
        .outerjoin(partition_state, same(partition_state, changed))
        .join(pointer, pointer_of(changed))
        .where(unsafe)
        .order_by(*changed.c)
    )
    return [
        Unsafe(Artifact(PartitionKey(*key), run_id, schema_version), status)
        for *key, run_id, schema_version, status in connection.execute(query)
    ]


def find_still_unsafe(
    connection: Connection, unsafe: ColumnElement[bool], selection: Selection, earlier: Sequence[Unsafe]
) -> list[Unsafe]:
    """Return the same once the version is locked, for whoever compared everything before that.

    To compare a million partitions takes seconds, and nobody should wait for it. What has changed since is
    noted, and what was found is compared again: it may be safe by now.
    """
    noted = find_unsafe(connection, unsafe, selection, full=False)
    if not earlier:
        return noted
    # One statement decides: two of them may see a verdict that commits in between, and differ.
    keys = {each.artifact.key for each in (*noted, *earlier)}
    return find_unsafe(connection, unsafe, Selection(keys=keys), full=True)


def hide(
    connection: Connection, unsafe: Sequence[Unsafe], version: int, at: datetime
) -> list[PartitionHidden]:
    """End pointers before a version, and return that as facts."""
    if unsafe:
        rows.fill_batch(connection, (each.artifact for each in unsafe))
        rows.close(connection, version, at)
    return [
        PartitionHidden(key=hidden.key, run_id=hidden.run_id, attempt=str(version), status=status)
        for hidden, status in unsafe
    ]
