"""Clean-up: which artifacts nothing needs, and how they go without harm to a load at the same time (R-WH-7).

A removal has three steps: condemn in the ledger, delete the files, forget in the ledger. What is condemned is
a copy of an artifact, and the names of files carry their copy. From then on a swap refuses that copy, and a
load stages the next one. So no pointer ever names files that are gone; a clean-up that is slow deletes
nothing that a load wrote since; and one that died holds up nobody: the next one deletes what is left, and
forgets it. Load records stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    FromClause,
    and_,
    bindparam,
    case,
    not_,
    or_,
    select,
    union,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.errors import InvalidInput
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import same, stream
from sealbook.ledger.db.types import UtcTimestamp
from sealbook.ledger.pointers import rows
from sealbook.ledger.pointers.conditions import (
    AT_CUT,
    NEXT_COPY,
    OPEN,
    SUCCESS,
    TAKEN,
    record_of,
    removal_of,
)
from sealbook.ledger.pointers.rows import batch
from sealbook.ledger.pointers.tables import ARTIFACT, consumer, cut, load_record, pointer, removal
from sealbook.ledger.states.tables import partition_state
from sealbook.model import PartitionKey
from sealbook.model.artifacts import Artifact, Condemned


class RemovalWriter:
    """The port of clean-up. `retain` is how long an artifact is kept after it was last published."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def time(self) -> datetime:
        """Return the time by which removals go: the ledger's, and never before its latest change."""
        with self._database.read() as connection:
            return rows.time_of_pointers(connection, self._clock)

    def removable(self, retain: timedelta) -> Iterator[Artifact]:
        """Stream the loaded artifacts that nothing needs, and those that a clean-up left condemned."""
        _check_retention(retain)
        return stream(self._database, _REMOVABLE.params(horizon=self.time() - retain), _artifact)

    def unneeded(self, artifacts: Iterable[Artifact], retain: timedelta) -> list[Artifact]:
        """Return which of these artifacts nothing needs, be they loaded or left behind by a crashed load."""
        _check_retention(retain)
        asked = list(artifacts)

        def work(connection: Connection) -> list[Artifact]:
            horizon = rows.time_of_pointers(connection, self._clock) - retain
            rows.fill_batch(connection, asked)
            return [asked[row.position] for row in connection.execute(_UNNEEDED, {"horizon": horizon})]

        return self._database.write(work)

    def condemn(self, artifacts: Iterable[Artifact], retain: timedelta) -> list[Condemned]:
        """Condemn those of these artifacts that nothing needs, and return them: delete these copies' files.

        What is condemned already is returned as well, as it was, for whoever condemned it may have died.
        """
        _check_retention(retain)
        asked = list(dict.fromkeys(artifacts))

        def work(connection: Connection) -> list[Condemned]:
            version, changed_at = rows.lock_version(connection)
            at = self._clock.now(connection, not_before=changed_at)
            rows.fill_batch(connection, asked)
            found = connection.execute(_UNNEEDED, {"horizon": at - retain}).all()
            condemned = [Condemned(asked[row.position], row.copy) for row in found]
            rows.fill_batch(connection, [each.artifact for each in condemned])
            connection.execute(_condemning(connection.dialect.name), {"at": at})
            rows.set_version(connection, version, at)
            return condemned

        return self._database.write(work)

    def forget(self, condemned: Iterable[Condemned]) -> None:
        """Note that the files of condemned copies are deleted."""
        gone = list(condemned)

        def work(connection: Connection) -> None:
            version, changed_at = rows.lock_version(connection)
            at = self._clock.now(connection, not_before=changed_at)
            rows.set_version(connection, version, at)
            rows.fill_batch(connection, (each.artifact for each in gone), [each.copy for each in gone])
            connection.execute(_REMOVING, {"at": at})

        self._database.write(work)


def _check_retention(retain: timedelta) -> None:
    if not isinstance(retain, timedelta) or retain < timedelta(0):
        raise InvalidInput.of("retain", retain, "a timedelta that is not negative")


def _artifact(*row: Any) -> Artifact:
    *key, run_id, schema_version = row
    return Artifact(PartitionKey(*key), run_id, schema_version)


def _moment(name: str) -> ColumnElement[Any]:
    return bindparam(name, type_=UtcTimestamp)


def _needed(artifact: FromClause) -> ColumnElement[bool]:
    """Say that a pointer, a cut, a mirror or the retention needs an artifact, or that a load may soon.

    Its files are also needed where a run that shares them is.
    """
    pinned = select(cut.c.token).where(AT_CUT).correlate(pointer).exists()
    followed = select(consumer.c.name).where(
        consumer.c.holds,
        consumer.c.source == pointer.c.source,
        consumer.c.query_name == pointer.c.query_name,
        pointer.c.valid_to > consumer.c.version,
    )
    held = select(pointer.c.run_id).where(
        same(pointer, artifact, "schema_version"),
        _has_files_of(artifact, pointer.c.run_id),
        or_(OPEN, pointer.c.closed_at > _moment("horizon"), pinned, followed.correlate(pointer).exists()),
    )
    authoritative = select(partition_state.c.status).where(
        same(partition_state, artifact, "schema_version"),
        SUCCESS,
        _has_files_of(artifact, partition_state.c.current_run_id),
    )
    return or_(held.correlate(artifact).exists(), authoritative.correlate(artifact).exists())


def _has_files_of(artifact: FromClause, run_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Say that a run of the same partition is that of an artifact, or shares its files."""
    sharers = select(_sharing.c.run_id).where(
        same(_sharing, artifact, "schema_version"), _sharing.c.files_run_id == artifact.c.run_id
    )
    return or_(run_id == artifact.c.run_id, run_id.in_(sharers.correlate(artifact)))


_sharing = load_record.alias("sharing")
_UNFINISHED = and_(TAKEN, removal.c.removed_at.is_(None))
"""A clean-up condemned it, and has not said that its files are gone."""

_UNNEEDED = (
    select(batch.c.position, case((_UNFINISHED, removal.c.copy), else_=NEXT_COPY).label("copy"))
    .outerjoin(load_record, record_of(batch))
    .outerjoin(removal, removal_of(batch))
    .where(or_(_UNFINISHED, not_(_needed(batch))))
    .order_by(batch.c.position)
)
_REMOVABLE = select(
    union(
        select(*(load_record.c[name] for name in ARTIFACT))
        .outerjoin(removal, removal_of(load_record))
        .where(load_record.c.files_run_id.is_(None))  # what shares files has none to remove
        .where(or_(_UNFINISHED, and_(not_(TAKEN), not_(_needed(load_record))))),
        # Also what has no load record: files that a crashed load left behind, and a crashed clean-up deleted.
        select(*(removal.c[name] for name in ARTIFACT))
        .outerjoin(load_record, record_of(removal))
        .where(load_record.c.run_id.is_(None), removal.c.removed_at.is_(None)),
    ).subquery()
)
_REMOVING = (
    update(removal)
    .where(removal_of(batch), removal.c.copy == batch.c.copy, removal.c.removed_at.is_(None))
    .values(removed_at=_moment("at"))
)


@cache
def _condemning(dialect: str) -> Executable:
    """Condemn the batch; what is condemned and not yet gone stays as it is."""
    artifacts = (
        select(*(batch.c[name] for name in ARTIFACT), NEXT_COPY, _moment("at"))
        .outerjoin(load_record, record_of(batch))
        .outerjoin(removal, removal_of(batch))
        .where(not_(_UNFINISHED))
        .order_by(batch.c.position)
    )
    insert_into = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = insert_into(removal).from_select((*ARTIFACT, "copy", "condemned_at"), artifacts)
    condemning: Executable = statement.on_conflict_do_update(
        index_elements=removal.primary_key,
        set_={
            "copy": statement.excluded.copy,
            "condemned_at": statement.excluded.condemned_at,
            "removed_at": None,
        },
    )
    return condemning
