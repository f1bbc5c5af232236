"""The control plane's port: what people and policy may change, and the log that says who did (R-CTL-3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection, Executable, select

from sealbook.errors import IllegalMove
from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events.append import append_new, lock_runs
from sealbook.ledger.states import rows as state_rows
from sealbook.ledger.states.audit import Action, check_author, log_override
from sealbook.ledger.states.tables import OVERRIDDEN, attempt
from sealbook.ledger.work.port import Follower
from sealbook.model import PartitionKey, PartitionState, RunId, next_state
from sealbook.model.keys import check_key
from sealbook.model.partition_events import PartitionRequeued
from sealbook.model.state import Requeue
from sealbook.model.wire import json_object


class RequeueResult(NamedTuple):
    """A partition after a requeue: its state by now, and why it was refused if it was."""

    state: PartitionState
    refused: str | None = None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.state.key


class OverrideWriter:
    """The port of audited control actions."""

    def __init__(self, database: Database, clock: LedgerClock, follower: Follower) -> None:
        self._database = database
        self._clock = clock
        self._follower = follower

    def requeue(
        self,
        keys: Iterable[PartitionKey],
        *,
        actor: str,
        reason: str,
        filter: Mapping[str, object] | None = None,  # noqa: A002 - the log's own word for it
    ) -> list[RequeueResult]:
        """Turn failed partitions to pending, and say of each, in the order given, whether that was done.

        What is not failed is refused and left as it is; IllegalMove if all of them are. `filter` records how
        they were chosen.
        """
        chosen = list(keys)
        check_author(actor, reason)
        for key in chosen:
            check_key(key)
        chosen_by = _chosen_by(filter)
        if not chosen:
            return []
        return self._database.write(
            lambda connection: self.requeue_in(connection, chosen, actor, reason, chosen_by)
        )

    def requeue_in(
        self,
        connection: Connection,
        chosen: Sequence[PartitionKey],
        actor: str,
        reason: str,
        chosen_by: dict[str, object] | None,
    ) -> list[RequeueResult]:
        """Do the same in the caller's transaction."""
        found = state_rows.lock(connection, set(chosen))
        last_runs = _last_runs(connection, found)
        lock_runs(connection, last_runs.values())
        at = state_rows.not_before(self._clock.now(connection), found.values())
        results = {
            key: _requeued(found.get(key, PartitionState.pending(key)), at) for key in dict.fromkeys(chosen)
        }
        done = {key: result.state for key, result in results.items() if result.refused is None}
        if not done:
            raise _none_requeued(list(results.values()))
        state_rows.write(connection, done.values(), OVERRIDDEN)
        override = log_override(
            connection, Action.REQUEUE, done, actor=actor, reason=reason, at=at, filter=chosen_by
        )
        requeued = [
            PartitionRequeued(
                key=key, run_id=last_runs[key], attempt=str(override), actor=actor, reason=reason
            )
            for key in done
        ]
        append_new(connection, [fact.to_event() for fact in requeued], at)
        self._follower.follow(connection, requeued, at)
        return [results[key] for key in chosen]


def _requeued(state: PartitionState, at: datetime) -> RequeueResult:
    try:
        return RequeueResult(next_state(state, Requeue(), at))
    except IllegalMove as refused:
        return RequeueResult(state, str(refused))


def _none_requeued(results: Sequence[RequeueResult]) -> IllegalMove:
    others = f"; and so on for {len(results) - 1} more" if len(results) > 1 else ""
    return IllegalMove(f"{results[0].refused}{others}", remedy="`sealbook state inspect` shows the states.")


def _last_runs(
    connection: Connection, states: Mapping[PartitionKey, PartitionState]
) -> dict[PartitionKey, RunId]:
    """Return the run of the last attempt of each partition that has one, as a failed one always does."""
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


def _chosen_by(filter: Mapping[str, object] | None) -> dict[str, object] | None:  # noqa: A002 - as above
    """Return the filter as JSON holds it, days as text."""
    if filter is None:
        return None
    if isinstance(filter, Mapping):
        filter = {  # noqa: A001
            name: value.isoformat() if isinstance(value, date) else value for name, value in filter.items()
        }
    return json_object("filter", filter)
