"""The loader's port: the swap that publishes, and the hiding of what is no longer safe.

States are read without a lock, for which the loader has no right. That is sound: a verdict that comes between
the check and the swap leaves the same as one that comes right after the swap. If it moved the authority, the
pointer is behind; if it demoted, readers pass the pointer over; either way the next plan has the partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Unpack

from sqlalchemy import Connection, and_, not_, select

from sealbook.clock import Clock
from sealbook.errors import Conflict, InvalidInput
from sealbook.ledger.bulk import insert_rows
from sealbook.ledger.engine import Database
from sealbook.ledger.pointers import rows
from sealbook.ledger.pointers.conditions import SUCCESS, PointerFilters, pointer_of
from sealbook.ledger.pointers.rows import batch
from sealbook.ledger.pointers.tables import load_record, pointer, removal
from sealbook.ledger.state_rows import same
from sealbook.ledger.tables import partition_state
from sealbook.ledger.types import in_utc
from sealbook.model import PartitionKey, RunId
from sealbook.model.publication import PointerMove, PointerPublished, Staged, SwapResult

Announce = Callable[[Connection, Sequence[PointerMove]], None]
"""Tells of what was done to pointers, as the last thing in the transaction that does it."""


class PointerWrites:
    """The port of the loader."""

    def __init__(self, database: Database, clock: Clock, announce: Announce | None = None) -> None:
        self._database = database
        self._clock = clock
        self._announce = announce

    def swap(self, staged: Iterable[Staged]) -> SwapResult:
        """Publish a batch in one transaction, and leave alone what is not the authority by now (R-WH-3).

        Swapping again what is published changes nothing. An artifact that contradicts the load record of its
        run is a Conflict, and then nothing of the batch is published.
        """
        by_key: dict[PartitionKey, Staged] = {}
        for each in staged:
            if not isinstance(each, Staged):
                raise InvalidInput.of("staged", each, "a Staged")
            known = by_key.setdefault(each.key, each)
            if known is not each and known != each:
                raise InvalidInput.of("staged", str(each.artifact), "one artifact of each partition")
        return self._database.write(lambda connection: self._swap(connection, list(by_key.values())))

    def hide(self, **filters: Unpack[PointerFilters]) -> list[PartitionKey]:
        """Take away every pointer whose state is no longer success, in one transaction (R-WH-5)."""

        def work(connection: Connection) -> list[PartitionKey]:
            version = rows.lock_version(connection) + 1
            hidden = rows.hide(connection, not_(SUCCESS), filters, version, in_utc(self._clock()))
            if hidden:
                rows.set_version(connection, version)
            rows.settle_all(connection)
            self._tell(connection, hidden)
            return [each.artifact.key for each in hidden]

        return self._database.write(work)

    def _swap(self, connection: Connection, staged: Sequence[Staged]) -> SwapResult:
        version = rows.lock_version(connection)
        at = in_utc(self._clock())
        rows.lay_down(connection, (each.artifact for each in staged))
        keys: dict[str, list[PartitionKey]] = defaultdict(list)
        publishing: list[PointerPublished] = []
        unrecorded: list[tuple[Any, ...]] = []
        for each, row in zip(staged, connection.execute(_STANDINGS), strict=True):
            standing = _Standing._make(row)
            outcome = _outcome(each, standing)
            keys[outcome].append(each.key)
            if outcome in _PUBLISHING:
                publishing.append(PointerPublished(each, standing.attempt, standing.pointed_run_id))
                if standing.digest is None:
                    unrecorded.append(_load_record(each, at))
        if publishing:
            version += 1
            rows.set_version(connection, version)
            if unrecorded:
                insert_rows(connection, load_record, unrecorded)
            if len(publishing) < len(staged):
                rows.lay_down(connection, (each.staged.artifact for each in publishing))
            rows.publish(connection, version, at)
        rows.settle(connection)
        self._tell(connection, publishing)
        return SwapResult(version, **{outcome: tuple(found) for outcome, found in keys.items()})

    def _tell(self, connection: Connection, moves: Sequence[PointerMove]) -> None:
        if moves and self._announce is not None:
            self._announce(connection, moves)


_PUBLISHING = ("loaded", "replaced")


class _Standing(NamedTuple):
    """What the ledger knows of a staged artifact and of its partition."""

    authoritative: bool | None
    attempt: int
    accepted_count: int
    pointed_run_id: RunId | None
    pointed_schema_version: str | None
    digest: str | None
    condemned: bool
    removed_version: int | None


_STANDINGS = (
    select(
        and_(
            SUCCESS,
            partition_state.c.current_run_id == batch.c.run_id,
            partition_state.c.schema_version == batch.c.schema_version,
        )
    )
    .add_columns(partition_state.c.attempt_count, partition_state.c.record_count)
    .add_columns(pointer.c.run_id, pointer.c.schema_version)
    .add_columns(load_record.c.digest)
    .add_columns(removal.c.condemned_at.is_not(None), removal.c.removed_version)
    .select_from(batch)
    .outerjoin(partition_state, same(partition_state, batch))
    .outerjoin(pointer, pointer_of(batch))
    .outerjoin(load_record, same(load_record, batch, "run_id", "schema_version"))
    .outerjoin(removal, same(removal, batch, "run_id", "schema_version"))
    .order_by(batch.c.position)
)
"""The standing of each artifact of the batch, in its order."""


def _outcome(staged: Staged, standing: _Standing) -> str:
    """Return the field of SwapResult that a partition belongs to."""
    if not standing.authoritative:
        return "moved"
    if standing.condemned and _came_after(standing.removed_version, staged.planned_version):
        return "removed"
    if standing.accepted_count != staged.record_count:
        return "miscounted"
    if standing.digest is not None and standing.digest != staged.digest:
        raise _conflict(staged, standing.digest)
    if standing.pointed_run_id is None:
        return "loaded"
    artifact = staged.artifact
    if (standing.pointed_run_id, standing.pointed_schema_version) == (
        artifact.run_id,
        artifact.schema_version,
    ):
        return "unchanged"
    return "replaced"


def _came_after(removed_version: int | None, planned_version: int) -> bool:
    """Tell whether clean-up may have removed an artifact after it was staged.

    Had it been removed before the plan, staging would have found it missing, and written it anew.
    """
    return removed_version is None or removed_version > planned_version


def _load_record(staged: Staged, at: datetime) -> tuple[Any, ...]:
    """Return the values of a load record in the order of its columns."""
    key, artifact = staged.key, staged.artifact
    return (
        key.source,
        key.customer_id,
        key.query_name,
        key.logical_date,
        artifact.run_id,
        artifact.schema_version,
        at,
        staged.record_count,
        staged.bytes,
        staged.digest,
        staged.location,
        staged.parts,
    )


def _conflict(staged: Staged, digest: str) -> Conflict:
    return Conflict(
        f"{staged.artifact} was loaded before with digest {digest}, and now has {staged.digest}",
        remedy="Artifacts never change. `sealbook warehouse verify` says whether the recorded one is intact.",
    )
