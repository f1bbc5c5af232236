"""Rollbacks: an operator gives authority to another accepted run, and consumers follow (R-STATE-9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from sealbook.errors import IllegalMove, NotFound
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import at_key
from sealbook.ledger.events.append import append_new, lock_runs
from sealbook.ledger.events.horizon import refuse_from_the_future, run_horizon
from sealbook.ledger.pointers import following
from sealbook.ledger.pointers.rows import lock_version
from sealbook.ledger.states import rows as state_rows
from sealbook.ledger.states.audit import Action, check_author, log_override
from sealbook.ledger.states.tables import OVERRIDDEN, attempt, partition_state, rollback
from sealbook.ledger.work.port import Follower
from sealbook.model import Outcome, PartitionKey, PartitionState, RunId, next_state
from sealbook.model.artifacts import Artifact
from sealbook.model.keys import check_key, is_ahead
from sealbook.model.partition_events import PartitionRolledBack
from sealbook.model.state import Rollback


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback does: from which run to which, and the state after it.

    `is_readable` says whether consumers get the chosen run at once; else they get nothing of the partition
    until a load has staged it. No run up to `newest_run_id` takes authority by itself any more.
    """

    from_run_id: RunId
    state: PartitionState
    newest_run_id: RunId
    is_readable: bool

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.state.key


class RollbackWriter:
    """The port of whoever may roll back."""

    def __init__(self, database: Database, clock: LedgerClock, follower: Follower) -> None:
        self._database = database
        self._clock = clock
        self._follower = follower

    def rollback(
        self,
        key: PartitionKey,
        run_id: str,
        *,
        actor: str,
        reason: str,
        sealed: Iterable[RunId] | None = None,
        dry_run: bool = False,
    ) -> RolledBack:
        """Give authority to another run of the same schema_version whose latest judgement accepted it.

        `sealed` are the partition's runs in raw storage, for who knows it: then the run must be among them. A
        dry run says what would be done.
        """
        check_key(key)
        target = RunId(run_id)
        check_author(actor, reason)
        known = None if sealed is None else frozenset(sealed)
        if known is not None and target not in known:
            raise NotFound(
                f"{key} run {target} is not sealed in raw storage",
                remedy=f"`sealbook raw list {key}` lists the runs that are; or fetch the partition again.",
            )

        def work(connection: Connection) -> RolledBack:
            version, changed_at = lock_version(connection)
            before = state_rows.lock(connection, [key]).get(key, PartitionState.pending(key))
            published = following.pointed(connection, key)
            lock_runs(connection, {target, *([] if published is None else [published.run_id])})
            now = self._clock.now(connection, not_before=changed_at)
            at = state_rows.not_before(now, [before])
            move, done = _planned(connection, before, target, known or frozenset(), at)
            state_rows.write(connection, [done.state], OVERRIDDEN)
            override = log_override(
                connection, Action.ROLLBACK, [key], actor=actor, reason=reason, at=at, run_id=target
            )
            runs = (done.from_run_id, target, done.newest_run_id)
            connection.execute(insert(rollback).values((*state_rows.key_row(key).values(), override, *runs)))
            told = PartitionRolledBack(
                key=key,
                run_id=target,
                attempt=str(override),
                from_run_id=done.from_run_id,
                schema_version=move.schema_version,
                record_count=move.record_count,
                actor=actor,
                reason=reason,
                newest_run_id=done.newest_run_id,
            )
            moved = following.follow(connection, _artifact(key, move), move.record_count, version, at)
            append_new(connection, [fact.to_event() for fact in (told, *moved)], at)
            self._follower.follow(connection, [told, *moved], at)
            return done

        if dry_run:
            with self._database.read() as connection:
                query = select(partition_state).where(*at_key(partition_state, key))
                row = connection.execute(query).one_or_none()
                state = PartitionState.pending(key) if row is None else PartitionState(*row)
                at = self._clock.now(connection)
                return _planned(connection, state, target, known or frozenset(), at)[1]
        return self._database.write(work)


def _planned(
    connection: Connection, before: PartitionState, target: RunId, sealed: frozenset[RunId], at: datetime
) -> tuple[Rollback, RolledBack]:
    """Return the move to a run, and what it does; IllegalMove or NotFound says why it cannot be made."""
    refuse_from_the_future(connection, [target], at)
    key = before.key
    query = (
        select(attempt.c.outcome, attempt.c.schema_version, attempt.c.record_count)
        .where(*at_key(attempt, key), attempt.c.run_id == target)
        .order_by(attempt.c.attempt.desc())
        .limit(1)
    )
    latest = connection.execute(query).one_or_none()
    remedy = f"`sealbook state history {key}` lists the runs that were judged."
    if latest is None:
        raise NotFound(f"{key} has no judged run {target}", remedy=remedy)
    if latest.outcome != Outcome.ACCEPTED:
        raise IllegalMove(f"{key} run {target} was rejected when last judged", remedy=remedy)
    judged = connection.execute(select(attempt.c.run_id).where(*at_key(attempt, key)).distinct()).scalars()
    # A run from the future would hold authority for as long as it lies ahead.
    horizon = run_horizon(connection, at)
    newest = max(run for run in {target, *judged, *sealed} if not is_ahead(run, horizon))
    move = Rollback(target, latest.schema_version, latest.record_count, newest)
    after = next_state(before, move, at)
    if before.current_run_id is None:
        raise AssertionError(f"{key} was rolled back, but had no run")
    readable = following.is_there(connection, _artifact(key, move), move.record_count)
    return move, RolledBack(before.current_run_id, after, newest, readable)


def _artifact(key: PartitionKey, move: Rollback) -> Artifact:
    return Artifact(key, move.run_id, move.schema_version)
