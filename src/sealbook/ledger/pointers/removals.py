"""Clean-up: which artifacts nothing needs, and how they go without harm to a load at the same time (R-WH-7).

A removal has three steps: condemn in the ledger, delete the files, forget in the ledger. Until then a swap
refuses a condemned artifact; afterwards, one that was staged for a plan from before. So no pointer ever names
files that are gone. A crash in between leaves the artifact condemned: the next clean-up deletes what is left
of it, and forgets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    and_,
    bindparam,
    delete,
    insert,
    not_,
    or_,
    select,
    tuple_,
    union,
    update,
)

from sealbook.errors import InvalidInput
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import same, stream
from sealbook.ledger.db.types import UtcTimestamp
from sealbook.ledger.pointers import rows
from sealbook.ledger.pointers.conditions import AT_CUT, OPEN, SUCCESS
from sealbook.ledger.pointers.rows import batch
from sealbook.ledger.pointers.tables import ARTIFACT, cut, load_record, pointer, removal
from sealbook.ledger.states.tables import partition_state
from sealbook.model import PartitionKey
from sealbook.model.publication import Artifact

ABANDONED_AFTER = timedelta(hours=1)
"""How long a clean-up may take from condemning artifacts to forgetting them; then another one takes over."""


class RemovalWriter:
    """The port of clean-up. `retain` is how long an artifact is kept after it was last published."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def removable(self, retain: timedelta) -> Iterator[Artifact]:
        """Stream the loaded artifacts that nothing needs, and those that a clean-up left condemned."""
        _check_retention(retain)
        with self._database.read() as connection:
            times = self._times(connection, retain)
        return stream(self._database, _REMOVABLE.params(times), _artifact)

    def unneeded(self, artifacts: Iterable[Artifact], retain: timedelta) -> list[Artifact]:
        """Return which of these artifacts nothing needs, be they loaded or left behind by a crashed load."""
        _check_retention(retain)
        asked = list(artifacts)
        return self._database.write(
            lambda connection: _unneeded(connection, asked, self._times(connection, retain))
        )

    def condemn(self, artifacts: Iterable[Artifact], retain: timedelta) -> list[Artifact]:
        """Mark those of these artifacts that nothing needs, and return them: their files may be deleted.

        One that another clean-up has condemned is left to it, unless it is long overdue.
        """
        _check_retention(retain)
        asked = list(artifacts)

        def work(connection: Connection) -> list[Artifact]:
            rows.lock_version(connection)
            times = self._times(connection, retain)
            condemned = _unneeded(connection, asked, times)
            rows.fill_batch(connection, condemned)
            connection.execute(_FORGETTING_REMOVALS)
            connection.execute(_CONDEMNING, {"at": times["at"]})
            return condemned

        return self._database.write(work)

    def forget(self, artifacts: Iterable[Artifact]) -> None:
        """Drop the load records of condemned artifacts whose files are deleted."""
        gone = list(artifacts)

        def work(connection: Connection) -> None:
            version = rows.lock_version(connection) + 1
            rows.set_version(connection, version)
            rows.fill_batch(connection, gone)
            connection.execute(_FORGETTING)
            connection.execute(_REMOVING, {"version": version})

        self._database.write(work)

    def _times(self, connection: Connection, retain: timedelta) -> dict[str, Any]:
        at = self._clock.now(connection)
        return {"at": at, "horizon": at - retain, "overdue": at - ABANDONED_AFTER}


def _check_retention(retain: timedelta) -> None:
    if not isinstance(retain, timedelta) or retain < timedelta(0):
        raise InvalidInput.of("retain", retain, "a timedelta that is not negative")


def _unneeded(connection: Connection, artifacts: list[Artifact], times: dict[str, Any]) -> list[Artifact]:
    rows.fill_batch(connection, artifacts)
    return [artifacts[position] for position in connection.execute(_UNNEEDED, times).scalars()]


def _artifact(*row: Any) -> Artifact:
    *key, run_id, schema_version = row
    return Artifact(PartitionKey(*key), run_id, schema_version)


def _same_artifact(left: FromClause, right: FromClause) -> ColumnElement[bool]:
    return same(left, right, "run_id", "schema_version")


def _moment(name: str) -> ColumnElement[Any]:
    return bindparam(name, type_=UtcTimestamp)


def _needed(artifact: FromClause) -> ColumnElement[bool]:
    """Say that a pointer, a cut or the retention needs an artifact, or that a load may be about to."""
    pinned = select(cut.c.token).where(AT_CUT).correlate(pointer).exists()
    held = select(pointer.c.run_id).where(
        _same_artifact(pointer, artifact), or_(OPEN, pointer.c.closed_at > _moment("horizon"), pinned)
    )
    authoritative = select(partition_state.c.status).where(
        same(partition_state, artifact, "schema_version"),
        SUCCESS,
        partition_state.c.current_run_id == artifact.c.run_id,
    )
    return or_(held.correlate(artifact).exists(), authoritative.correlate(artifact).exists())


_CONDEMNED = removal.c.removed_version.is_(None)
_OVERDUE = and_(_CONDEMNED, removal.c.condemned_at <= _moment("overdue"))


def _going(artifact: FromClause) -> ColumnElement[bool]:
    """Say that an artifact may be removed; for a query that is outer-joined with what is condemned."""
    return or_(and_(removal.c.run_id.is_(None), not_(_needed(artifact))), _OVERDUE)


_UNNEEDED = (
    select(batch.c.position)
    .outerjoin(removal, and_(_same_artifact(removal, batch), _CONDEMNED))
    .where(_going(batch))
    .order_by(batch.c.position)
)
_REMOVABLE = select(
    union(
        select(*(load_record.c[name] for name in ARTIFACT))
        .outerjoin(removal, and_(_same_artifact(removal, load_record), _CONDEMNED))
        .where(_going(load_record)),
        # Also what has no load record: files that a crashed load left behind, and a crashed clean-up deleted.
        select(*(removal.c[name] for name in ARTIFACT)).where(_OVERDUE),
    ).subquery()
)
_BATCH = select(*(batch.c[name] for name in ARTIFACT))
_FORGETTING_REMOVALS = delete(removal).where(tuple_(*(removal.c[name] for name in ARTIFACT)).in_(_BATCH))
_CONDEMNING = insert(removal).from_select((*ARTIFACT, "condemned_at"), _BATCH.add_columns(_moment("at")))
_FORGETTING = delete(load_record).where(
    tuple_(*(load_record.c[name] for name in ARTIFACT)).in_(
        _BATCH.join(removal, and_(_same_artifact(removal, batch), _CONDEMNED))
    )
)
_REMOVING = (
    update(removal)
    .where(_same_artifact(removal, batch), _CONDEMNED)
    .values(removed_version=bindparam("version"))
)
