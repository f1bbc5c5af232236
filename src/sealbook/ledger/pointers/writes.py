"""The loader's port: the swap that publishes, and the hiding of what is no longer safe.

States are read without a lock, for which the loader has no right. That is sound: a verdict that comes between
the check and the swap leaves the same as one that comes right after the swap. If it moved the authority, the
pointer is behind; if it demoted, readers pass the pointer over; either way the next plan has the partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, and_, case, not_, select, true

from sealbook.errors import Conflict, InvalidInput
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import same
from sealbook.ledger.events.append import append_new, lock_runs
from sealbook.ledger.events.facts import counted_once
from sealbook.ledger.pointers import rows
from sealbook.ledger.pointers.conditions import NO_SUCCESS, SUCCESS, pointer_of, record_of, removal_of
from sealbook.ledger.pointers.drifts import record_drifts
from sealbook.ledger.pointers.hiding import Unsafe, find_still_unsafe, find_unsafe, hide
from sealbook.ledger.pointers.locations import files_run
from sealbook.ledger.pointers.rows import batch
from sealbook.ledger.pointers.tables import load_record, pointer, removal
from sealbook.ledger.states.reader import EVERYTHING
from sealbook.ledger.states.tables import partition_state
from sealbook.ledger.work.fences import lock_held
from sealbook.ledger.work.port import Follower
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import Staged, SwapResult
from sealbook.model.claims import Fences
from sealbook.model.partition_events import PartitionPublished
from sealbook.model.selection import Selection


class PointerWriter:
    """The port of the loader."""

    def __init__(self, database: Database, clock: LedgerClock, follower: Follower) -> None:
        self._database = database
        self._clock = clock
        self._follower = follower

    def swap(self, staged: Iterable[Staged], under: Fences | None = None) -> SwapResult:
        """Publish a batch in one transaction, and leave alone what is not the authority by now (R-WH-3).

        Swapping again what is published changes nothing. An artifact that contradicts the load record of its
        run is a Conflict, and then nothing of the batch is published. What is worked on `under` claims is
        published if it is still held (R-CTL-4).
        """
        by_key: dict[PartitionKey, Staged] = {}
        for each in staged:
            if not isinstance(each, Staged):
                raise InvalidInput.of("staged", each, "a Staged")
            known = by_key.setdefault(each.key, each)
            if known is not each and known != each:
                raise InvalidInput.of("staged", str(each.artifact), "one artifact of each partition")
        return self._database.write(lambda connection: self._swap(connection, list(by_key.values()), under))

    def refile(self, staged: Iterable[Staged]) -> None:
        """Note where artifacts lie that had to be staged again under other names; nothing else changes."""
        again = list(staged)

        def work(connection: Connection) -> None:
            rows.lock_version(connection)
            rows.fill_batch_staged(connection, again)
            rows.refile(connection)

        self._database.write(work)

    def hide(self, selection: Selection = EVERYTHING, *, full: bool = False) -> list[PartitionKey]:
        """Take away every pointer whose state is no longer success, in one transaction (R-WH-5).

        It looks where an authority was noted as changed; `full` compares everything (R-WH-8).
        """
        earlier: list[Unsafe] = []
        if full:
            with self._database.read() as connection:
                earlier = find_unsafe(connection, NO_SUCCESS, selection, full=True)

        def work(connection: Connection) -> list[PartitionKey]:
            before, changed_at = rows.lock_version(connection)
            unsafe = find_still_unsafe(connection, NO_SUCCESS, selection, earlier)
            lock_runs(connection, {each.artifact.run_id for each in unsafe})
            at = self._clock.now(connection, not_before=changed_at)
            version = before + 1
            hidden = hide(connection, unsafe, version, at)
            if hidden:
                rows.set_version(connection, version, at)
            rows.clear_agreed_everywhere(connection)
            append_new(connection, [fact.to_event() for fact in hidden], at)
            return [fact.key for fact in hidden]

        return self._database.write(work)

    def _swap(self, connection: Connection, everything: Sequence[Staged], under: Fences | None) -> SwapResult:
        version, changed_at = rows.lock_version(connection)
        held = None if under is None else lock_held(connection, under)
        staged = [each for each in everything if held is None or each.key in held]
        lock_runs(connection, {each.artifact.run_id for each in staged})
        at = self._clock.now(connection, not_before=changed_at)
        rows.fill_batch_staged(connection, staged)
        keys: dict[str, list[PartitionKey]] = defaultdict(list)
        if len(staged) < len(everything):
            keys["lost"] = [each.key for each in everything if held is not None and each.key not in held]
        publishing: list[tuple[Staged, RunId | None, bool]] = []
        recorded: list[Staged] = []
        for each, (outcome, pointed_run_id, digest) in zip(
            staged, connection.execute(_STANDINGS), strict=True
        ):
            if outcome == _CONFLICT:
                raise _conflict(each, digest)
            keys[outcome].append(each.key)
            if outcome in _PUBLISHING:
                publishing.append((each, pointed_run_id, digest is not None))
            if outcome in _PUBLISHING or outcome == _UNCHANGED:
                recorded.append(each)
        if recorded:
            # Also of what is published already: its record may be lost, or its files written anew.
            if len(recorded) < len(staged):
                rows.fill_batch_staged(connection, recorded)
            rows.record(connection, at)
        if publishing:
            version += 1
            rows.set_version(connection, version, at)
            if len(publishing) < len(recorded):
                rows.fill_batch_staged(connection, (each for each, *_ in publishing))
            rows.publish(connection, version, at)
        rows.clear_agreed(connection)
        published = [
            PartitionPublished.of(each, version, replaced, again=again)
            for each, replaced, again in publishing
        ]
        record_drifts(connection, ((each, replaced) for each, replaced, _ in publishing))
        append_new(connection, [fact.to_event() for fact in counted_once(connection, published)], at)
        self._follower.follow(connection, published, at)
        return SwapResult(version, **{outcome: tuple(found) for outcome, found in keys.items()})


_PUBLISHING = ("loaded", "replaced")
_UNCHANGED = "unchanged"
_CONFLICT = "conflict"

_AUTHORITATIVE = and_(
    SUCCESS,
    partition_state.c.current_run_id == batch.c.run_id,
    partition_state.c.schema_version == batch.c.schema_version,
)
# Had clean-up condemned it before the plan, the next copy would have been staged.
_REMOVED_SINCE = removal.c.copy >= batch.c.copy
_SAME_FILES = files_run(load_record) == files_run(batch)
_OUTCOME = case(
    (_AUTHORITATIVE.is_not(true()), "moved"),
    (_REMOVED_SINCE, "removed"),
    (partition_state.c.record_count != batch.c.record_count, "miscounted"),
    (and_(_SAME_FILES, load_record.c.digest != batch.c.digest), _CONFLICT),
    (
        and_(pointer.c.run_id == batch.c.run_id, pointer.c.schema_version == batch.c.schema_version),
        _UNCHANGED,
    ),
    (not_(_SAME_FILES), "elsewhere"),
    (pointer.c.run_id.is_(None), "loaded"),
    else_="replaced",
)
"""The field of SwapResult that a partition belongs to, or a conflict."""

_STANDINGS = (
    select(_OUTCOME, pointer.c.run_id, load_record.c.digest)
    .select_from(batch)
    .outerjoin(partition_state, same(partition_state, batch))
    .outerjoin(pointer, pointer_of(batch))
    .outerjoin(load_record, record_of(batch))
    .outerjoin(removal, removal_of(batch))
    .order_by(batch.c.position)
)
"""What becomes of each artifact of the batch, and what there was before, in its order."""


def _conflict(staged: Staged, digest: str) -> Conflict:
    return Conflict(
        f"{staged.artifact} was loaded before with digest {digest}, and now has {staged.digest}",
        remedy="Artifacts never change. `sealbook warehouse verify` says whether the recorded one is intact.",
    )
