"""The control plane's port: what people and policy may change, and the log that says who did (R-CTL-3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection, insert, select

from sealbook.clock import Clock
from sealbook.errors import IllegalMove, InvalidInput, NotFound
from sealbook.ledger import state_rows
from sealbook.ledger.engine import Database
from sealbook.ledger.reads import at_key
from sealbook.ledger.tables import attempt, override_log
from sealbook.model import Outcome, PartitionKey, PartitionState, RunId, next_state
from sealbook.model.state import Requeue, Rollback


class ControlWrites:
    """The port of audited control actions."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def requeue(
        self,
        keys: Iterable[PartitionKey],
        *,
        actor: str,
        reason: str,
        filter: Mapping[str, object] | None = None,  # noqa: A002 - the log's own word for it
    ) -> list[PartitionState]:
        """Turn failed partitions to pending, all or none; `filter` records how they were chosen."""
        chosen = list(keys)
        _check_author(actor, reason)
        for key in chosen:
            _check_key(key)
        if not chosen:
            return []

        def work(connection: Connection) -> list[PartitionState]:
            at = self._clock()
            found = state_rows.lock(connection, set(chosen))
            states = {
                key: next_state(found.get(key, PartitionState.pending(key)), Requeue(), at)
                for key in dict.fromkeys(chosen)
            }
            state_rows.write(connection, states.values())
            _log(connection, "requeue", states, actor=actor, reason=reason, at=at, filter=filter)
            return [states[key] for key in chosen]

        return self._database.write(work)

    def rollback(self, key: PartitionKey, run_id: str, *, actor: str, reason: str) -> PartitionState:
        """Give authority back to an earlier accepted run of the same schema_version."""
        target = RunId(run_id)
        _check_author(actor, reason)
        _check_key(key)

        def work(connection: Connection) -> PartitionState:
            at = self._clock()
            found = state_rows.lock(connection, [key]).get(key, PartitionState.pending(key))
            state = next_state(found, _accepted_run(connection, key, target), at)
            state_rows.write(connection, [state])
            _log(connection, "rollback", [key], actor=actor, reason=reason, at=at, run_id=target)
            return state

        return self._database.write(work)


def _accepted_run(connection: Connection, key: PartitionKey, run_id: RunId) -> Rollback:
    """Return the move to a run whose latest judgement accepted it."""
    query = (
        select(attempt.c.outcome, attempt.c.schema_version, attempt.c.record_count)
        .where(*at_key(attempt, key), attempt.c.run_id == run_id)
        .order_by(attempt.c.attempt.desc())
        .limit(1)
    )
    latest = connection.execute(query).one_or_none()
    remedy = f"`sealbook state history {key}` lists the runs that were judged."
    if latest is None:
        raise NotFound(f"{key} has no judged run {run_id}", remedy=remedy)
    if latest.outcome != Outcome.ACCEPTED:
        raise IllegalMove(f"{key} run {run_id} was rejected when last judged", remedy=remedy)
    return Rollback(run_id, latest.schema_version, latest.record_count)


def _log(
    connection: Connection,
    action: str,
    keys: Iterable[PartitionKey],
    *,
    actor: str,
    reason: str,
    at: datetime,
    filter: Mapping[str, object] | None = None,  # noqa: A002 - the log's own word for it
    run_id: RunId | None = None,
) -> None:
    connection.execute(
        insert(override_log).values(
            at=at,
            actor=actor,
            action=action,
            reason=reason,
            filter=None if filter is None else dict(filter),
            keys=[str(key) for key in keys],
            run_id=run_id,
        )
    )


def _check_author(actor: str, reason: str) -> None:
    for field, value in (("actor", actor), ("reason", reason)):
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise InvalidInput.of(field, value, "text that says who and why; it goes into the override log")


def _check_key(key: object) -> None:
    if not isinstance(key, PartitionKey):
        raise InvalidInput.of("key", key, "a PartitionKey")
