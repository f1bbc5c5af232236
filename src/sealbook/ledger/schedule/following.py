"""Open work in step with what becomes of partitions: facts are folded as they are written (R-CTL-2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache

from sqlalchemy import Connection, Executable, case, select

from sealbook.ledger.db.bulk import given_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.pointers.conditions import pointer_of
from sealbook.ledger.pointers.coverage import AVAILABILITY
from sealbook.ledger.pointers.tables import pointer
from sealbook.ledger.schedule.pauses import pause_for_quota
from sealbook.ledger.states.tables import partition_state
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.rows import OpenWork
from sealbook.model import Outcome, PartitionKey, Status
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import (
    PartitionFact,
    PartitionFailed,
    PartitionJudged,
    PartitionRequeued,
)
from sealbook.model.retry import RetryPolicies
from sealbook.model.status import Availability
from sealbook.model.work import Standing, Work, next_work

_NOTHING = Standing(None, Availability.NONE)


class WorkFollower:
    """Folds facts into open work, by the policies of a book."""

    def __init__(self, retries: RetryPolicies | None = None) -> None:
        self._retries = retries or RetryPolicies()

    def follow(self, connection: Connection, facts: Sequence[PartitionFact], at: datetime) -> None:
        """Take up facts that were just written, and say what is to be done next about their partitions.

        Where nothing is open, only what failed opens something: whoever works by hand goes on by hand.
        """
        found: dict[PartitionKey, OpenWork] = {}
        if facts and work_rows.is_any(connection):
            found = work_rows.lock(connection, {fact.key for fact in facts})
        following = [fact for fact in facts if fact.key in found or _opens(fact)]
        if not following:
            return
        standings = _standings(connection, {fact.key for fact in following})
        after: dict[PartitionKey, Work | None] = {key: each.work for key, each in found.items()}
        for fact in following:
            key = fact.key
            retries = self._retries.of(key.source, key.query_name)
            after[key] = next_work(after.get(key), fact, standings.get(key, _NOTHING), retries, at)
        gone = [key for key in found if after[key] is None]
        if gone:
            work_rows.remove(connection, gone)
        changed = (_changed(found.get(key), work, at) for key, work in after.items() if work is not None)
        work_rows.write(connection, [each for each in changed if each != found.get(each.key)])
        pause_for_quota(connection, _by_quota(following), self._retries, at)


def _opens(fact: PartitionFact) -> bool:
    """Tell whether a fact opens work where there is none."""
    if isinstance(fact, PartitionJudged):
        return fact.outcome is Outcome.REJECTED
    return isinstance(fact, PartitionFailed | PartitionRequeued)


def _changed(before: OpenWork | None, after: Work, at: datetime) -> OpenWork:
    """Return a row with other work in it; what waits or has stopped is let go of."""
    row = OpenWork(after) if before is None else replace(before, work=after)
    if after.stop is None:
        row = row.going()
    elif before is None or before.work.stop is not after.stop:
        row = row.stopped(at)
    return row.let_go() if after.ready_at > at or after.stop is not None else row


def _by_quota(facts: Iterable[PartitionFact]) -> Iterable[PartitionFailed]:
    for fact in facts:
        if isinstance(fact, PartitionFailed) and fact.error_class is ErrorClass.QUOTA:
            yield fact


def _standings(connection: Connection, keys: Iterable[PartitionKey]) -> dict[PartitionKey, Standing]:
    rows = connection.execute(_standing(connection.dialect.name), work_rows.encode_keys(keys))
    return {PartitionKey(*key): Standing(run_id, Availability(word)) for *key, run_id, word in rows}


@cache
def _standing(dialect: str) -> Executable:
    asked = given_rows(dialect, [partition_state.c[name] for name in KEY])
    authority = case((partition_state.c.status == Status.SUCCESS.value, partition_state.c.current_run_id))
    return (
        select(*(partition_state.c[name] for name in KEY), authority, AVAILABILITY)
        .join(asked, same(partition_state, asked))
        .outerjoin(pointer, pointer_of(partition_state))
    )
