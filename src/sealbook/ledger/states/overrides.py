"""The control plane's port: what people and policy may change, and the log that says who did (R-CTL-3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from functools import cache

from sqlalchemy import Connection, Executable, insert, select

from sealbook.clock import Clock
from sealbook.errors import IllegalMove, NotFound
from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import at_key, same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events.append import append_new
from sealbook.ledger.states import rows as state_rows
from sealbook.ledger.states.tables import OVERRIDDEN, attempt, override_log
from sealbook.model import Outcome, PartitionKey, PartitionState, RunId, next_state
from sealbook.model.keys import check_key
from sealbook.model.partition_events import PartitionRequeued, PartitionRolledBack
from sealbook.model.state import Requeue, Rollback
from sealbook.model.verdict import check_text
from sealbook.model.wire import as_utc, json_object


class OverrideWriter:
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
            check_key(key)
        chosen_by = _chosen_by(filter)
        if not chosen:
            return []

        def work(connection: Connection) -> list[PartitionState]:
            found = state_rows.lock(connection, set(chosen))
            at = as_utc("time", self._clock())
            states = {
                key: next_state(found.get(key, PartitionState.pending(key)), Requeue(), at)
                for key in dict.fromkeys(chosen)
            }
            state_rows.write(connection, states.values(), OVERRIDDEN)
            override = _log(
                connection, "requeue", states, actor=actor, reason=reason, at=at, filter=chosen_by
            )
            requeued = [
                PartitionRequeued(key=key, run_id=run_id, attempt=str(override), actor=actor, reason=reason)
                for key, run_id in _last_runs(connection, states).items()
            ]
            append_new(connection, [fact.to_event() for fact in requeued], at)
            return [states[key] for key in chosen]

        return self._database.write(work)

    def rollback(self, key: PartitionKey, run_id: str, *, actor: str, reason: str) -> PartitionState:
        """Give authority back to an earlier accepted run of the same schema_version."""
        target = RunId(run_id)
        _check_author(actor, reason)
        check_key(key)

        def work(connection: Connection) -> PartitionState:
            found = state_rows.lock(connection, [key]).get(key, PartitionState.pending(key))
            at = as_utc("time", self._clock())
            move = _accepted_run(connection, key, target)
            state = next_state(found, move, at)
            state_rows.write(connection, [state], OVERRIDDEN)
            override = _log(connection, "rollback", [key], actor=actor, reason=reason, at=at, run_id=target)
            append_new(connection, [_rolled_back(found, move, override, actor, reason).to_event()], at)
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


def _rolled_back(
    before: PartitionState, move: Rollback, override: int, actor: str, reason: str
) -> PartitionRolledBack:
    if before.current_run_id is None:
        raise AssertionError(f"{before.key} was rolled back, but had no run")
    return PartitionRolledBack(
        key=before.key,
        run_id=move.run_id,
        attempt=str(override),
        from_run_id=before.current_run_id,
        schema_version=move.schema_version,
        record_count=move.record_count,
        actor=actor,
        reason=reason,
    )


def _last_runs(
    connection: Connection, states: Mapping[PartitionKey, PartitionState]
) -> dict[PartitionKey, RunId]:
    """Return the run of each partition's last attempt; a failed partition always has one."""
    asked = encode_rows(
        state_rows.key_row(key) | {"attempt": state.attempt_count} for key, state in states.items()
    )
    rows = connection.execute(_runs_of_attempts(connection.dialect.name), asked)
    return {PartitionKey(*row[:4]): row.run_id for row in rows}


@cache
def _runs_of_attempts(dialect: str) -> Executable:
    asked = given_rows(dialect, [attempt.c[name] for name in (*KEY, "attempt")])
    columns = [attempt.c[name] for name in (*KEY, "run_id")]
    return select(*columns).join(asked, same(attempt, asked, "attempt"))


def _log(
    connection: Connection,
    action: str,
    keys: Iterable[PartitionKey],
    *,
    actor: str,
    reason: str,
    at: datetime,
    filter: dict[str, object] | None = None,  # noqa: A002 - the log's own word for it
    run_id: RunId | None = None,
) -> int:
    """Record who did what and why, and return the id of the record."""
    logged = insert(override_log).values(
        at=at,
        actor=actor,
        action=action,
        reason=reason,
        filter=filter,
        keys=[str(key) for key in keys],
        run_id=run_id,
    )
    override: int = connection.execute(logged.returning(override_log.c.id)).scalar_one()
    return override


def _chosen_by(filter: Mapping[str, object] | None) -> dict[str, object] | None:  # noqa: A002 - as above
    """Return the filter as JSON holds it, days as text."""
    if filter is None:
        return None
    if isinstance(filter, Mapping):
        filter = {  # noqa: A001
            name: value.isoformat() if isinstance(value, date) else value for name, value in filter.items()
        }
    return json_object("filter", filter)


def _check_author(actor: str, reason: str) -> None:
    """Refuse a control action that does not say who and why; both go into the override log."""
    check_text("actor", actor)
    check_text("reason", reason)
