"""What is to be done next about a partition: the fold of its facts into open work.

The ledger folds each fact in the transaction that writes it, so that work is always in step with verdicts,
pointers and overrides. Retries stop at success: the work is gone. What is stopped otherwise stays listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.partition_events import (
    PartitionCancelled,
    PartitionFact,
    PartitionFailed,
    PartitionJudged,
    PartitionPublished,
    PartitionRequeued,
    PartitionRolledBack,
    PartitionSealed,
    Stage,
)
from sealbook.model.retry import Cause, Failing, Retries, RunNow, Stop, Stopped, Wait, decide
from sealbook.model.status import Availability
from sealbook.model.verdict import Outcome

_Failure = PartitionFailed | PartitionJudged


class Lane(StrEnum):
    """What work is done for; each has a share of its own (R-CTL-6)."""

    FRESH = "fresh"
    RETRY = "retry"
    REFRESH = "refresh"
    BACKFILL = "backfill"


class WorkKind(StrEnum):
    """Fetch a new run and take it all the way, judge a sealed one, load an accepted one."""

    FETCH = "fetch"
    JUDGE = "judge"
    LOAD = "load"

    @property
    def asks_source(self) -> bool:
        """Whether it costs requests: the others work on what is sealed."""
        return self is WorkKind.FETCH


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done next about one partition, and why it waits or has stopped."""

    key: PartitionKey
    lane: Lane
    kind: WorkKind
    ready_at: datetime
    """The earliest moment at which it may be worked on: the rules' next_run_at."""
    tries: int = 0
    """Failures in a row since the last success or operator's action; those by quota do not count."""
    failing_since: datetime | None = None
    cause: Cause | None = None
    error: str | None = None
    run_id: RunId | None = None
    """The run to judge or to load; of a fetch the newest run so far, which a newer one is to replace."""
    contract_hash: str | None = None
    """The contract that rejected the run: once another is in force, the run is judged again."""
    stop: Stop | None = None
    setup: str | None = None
    """The configuration under which it was parked; None until that was looked at."""


class Standing(NamedTuple):
    """Where a partition stands after a fact: the run with authority, if any, and what consumers get of it."""

    authority: RunId | None
    availability: Availability

    @property
    def to_load(self) -> RunId | None:
        """The run with authority, as long as it is not what consumers get."""
        return None if self.availability is Availability.PUBLISHED else self.authority


def next_work(
    work: Work | None, fact: PartitionFact, standing: Standing, retries: Retries, at: datetime
) -> Work | None:
    """Return what is to be done after one more fact; None if that is nothing.

    `standing` is that after the fact, `at` when the log heard of it.
    """
    if standing.to_load is not None:
        load = _load(work, fact.key, standing, at)
        if isinstance(fact, PartitionFailed) and _is_of_load(fact) and fact.run_id == standing.to_load:
            return _failed(load, fact, standing, retries, at)
        return load
    if work is not None and work.kind is WorkKind.LOAD:
        work = None  # it was loaded, or there is nothing to load any more
    match fact:
        case PartitionFailed() | PartitionJudged(outcome=Outcome.REJECTED):
            says_nothing = _is_of_load(fact) or _is_old(work, fact, standing)
            return work if says_nothing else _failed(work, fact, standing, retries, at)
        case PartitionJudged():
            return _accepted(work, fact, standing, at)
        case PartitionSealed():
            return _sealed(work, fact, at)
        case PartitionPublished():
            return work if work is not None and _is_newest(work, fact.run_id) else None
        case PartitionRequeued():
            return Work(fact.key, Lane.RETRY, WorkKind.JUDGE, at, run_id=fact.run_id)
        case PartitionRolledBack():
            return None
        case PartitionCancelled() if work is not None and _judges(work, fact.run_id):
            return _cancelled(work, retries)
    return work


def contract_changed(work: Work, contract_hash: str, at: datetime) -> Work:
    """Return the work once a contract is in force: a run that another one rejected is judged again at once.

    That goes before anything is fetched, also for what retries had given up; not for what somebody stopped.
    """
    waits = work.contract_hash is not None and work.run_id is not None
    if not waits or work.contract_hash == contract_hash or work.stop is Stop.MANUAL:
        return work
    return replace(work, kind=WorkKind.JUDGE, ready_at=at, stop=None)


def setup_seen(work: Work, setup: str, at: datetime) -> Work:
    """Return the work once the configuration was looked at: what was parked under another is tried again.

    `setup` is a digest of what is configured for the partition's source, customer and query.
    """
    if work.stop is not Stop.PERMANENT or work.setup == setup:
        return work
    return replace(work, setup=setup) if work.setup is None else clear_stop(work, at)


def due_again(work: Work, at: datetime) -> Work:
    """Return the work at a later due point of its day: a refresh that was given up is tried again."""
    given_up = work.stop in (Stop.MAX_ATTEMPTS, Stop.MAX_AGE)
    return clear_stop(work, at) if work.lane is Lane.REFRESH and given_up else work


class Undone(NamedTuple):
    """Why what was claimed was not done, where no fact tells of it: nothing could be said of the run, or the
    worker was lost.
    """

    cause: Cause
    error: str
    fetch: bool = False
    """Whether a new run is needed: the one to judge is not there any more."""


LAPSED = Undone(Cause.TRANSIENT, "its worker was lost: the lease ran out")


def lapse(work: Work, retries: Retries, at: datetime) -> Work:
    """Return the work after the lease on it ran out: somebody takes over at once.

    What has failed before waits first: it may be what ended its worker, and by jitter it is then claimed in
    other company. It is not given up for that before a second worker is lost: what the first had sealed would
    never be judged.
    """
    after = put_off(work, LAPSED, retries, at)
    if work.error != LAPSED.error:
        after = replace(after, stop=None)
    return replace(after, ready_at=work.ready_at) if not work.tries and after.stop is None else after


def put_off(work: Work, undone: Undone, retries: Retries, at: datetime) -> Work:
    """Return the work after it was claimed and not done: it waits as after a failure, and stops as after one.

    So what can never be judged, or ends its worker each time, is not claimed for ever. No attempt is counted.
    """
    after = replace(
        work,
        kind=WorkKind.FETCH if undone.fetch else work.kind,
        tries=work.tries + 1,
        failing_since=work.failing_since or at,
        cause=undone.cause,
        error=undone.error,
        setup=None,
    )
    ages = work.kind is not WorkKind.LOAD
    failing = Failing(work.key, after.tries, undone.cause, at, seed=work.run_id or "", ages=ages)
    match decide(failing, retries, at):
        case Stopped(stop=stop):
            return replace(after, ready_at=at, stop=stop)
        case Wait(until=until):
            return replace(after, ready_at=until)
        case RunNow():
            return replace(after, ready_at=at)


def mark_terminal(work: Work) -> Work:
    """Return the work after an operator gave it up."""
    return replace(work, stop=Stop.MANUAL)


def clear_stop(work: Work, at: datetime) -> Work:
    """Return the work after somebody made it possible again: its failures so far do not count any more."""
    return replace(work, ready_at=at, tries=0, failing_since=None, stop=None, setup=None)


def _load(work: Work | None, key: PartitionKey, standing: Standing, at: datetime) -> Work:
    """Return the loading of the run with authority: as it is if it is planned already, else anew."""
    if work is not None and work.kind is WorkKind.LOAD and work.run_id == standing.to_load:
        return work
    lane = _lane(standing, Lane.FRESH) if work is None else work.lane
    return Work(key, lane, WorkKind.LOAD, at, run_id=standing.to_load)


def _sealed(work: Work | None, fact: PartitionSealed, at: datetime) -> Work | None:
    """Return the work after a newer run was sealed: that is judged, whoever fetched it."""
    if work is None or (work.run_id is not None and fact.run_id <= work.run_id):
        return work
    stop = work.stop if work.stop is Stop.MANUAL else None
    ready_at = min(work.ready_at, at)
    return replace(work, kind=WorkKind.JUDGE, ready_at=ready_at, run_id=fact.run_id, stop=stop)


def _accepted(work: Work | None, fact: PartitionJudged, standing: Standing, at: datetime) -> Work | None:
    """Return the work after an acceptance that leaves nothing to load."""
    if work is None or not _judges(work, fact.run_id):
        return work
    if standing.authority is not None:
        return None
    # A rollback holds authority against that run: a newer one is needed, though this one did not fail.
    return replace(work, kind=WorkKind.FETCH, ready_at=at, tries=0, failing_since=None)


def _cancelled(work: Work, retries: Retries) -> Work:
    """Return the work once its sealed run is not to be judged: another is fetched, unless too many failed."""
    too_many = retries.max_attempts is not None and work.tries >= retries.max_attempts
    return replace(work, kind=WorkKind.FETCH, stop=work.stop or (Stop.MAX_ATTEMPTS if too_many else None))


def _failed(work: Work | None, fact: _Failure, standing: Standing, retries: Retries, at: datetime) -> Work:
    """Return the work after an attempt failed: it waits, or it has stopped."""
    before = work or Work(fact.key, Lane.RETRY, WorkKind.FETCH, at)
    cause = Cause.of(fact.error_class) if isinstance(fact, PartitionFailed) else Cause.REJECTED
    if cause is Cause.QUOTA:
        return _out_of_quota(before, fact, retries, at)
    after = replace(
        before,
        lane=_lane(standing, Lane.RETRY),
        kind=WorkKind.LOAD if _is_of_load(fact) else WorkKind.FETCH,
        tries=before.tries + 1,
        failing_since=before.failing_since or at,
        cause=cause,
        error=fact.error,
        run_id=fact.run_id,
        contract_hash=fact.contract_hash if isinstance(fact, PartitionJudged) else None,
        setup=None,
    )
    if before.stop is Stop.MANUAL:
        return after  # what somebody gave up, a failure does not take up again
    match decide(_failing(after.tries, cause, fact, at), retries, at):
        case Stopped(stop=stop):
            return replace(after, ready_at=at, stop=stop)
        case Wait(until=until):
            return replace(after, ready_at=until, stop=None)
        case RunNow():
            return replace(after, ready_at=at, stop=None)


def _out_of_quota(before: Work, fact: _Failure, retries: Retries, at: datetime) -> Work:
    """Return the work once its quota is used up: it waits, and nothing else is known of it than before."""
    if before.cause is None:
        before = replace(before, cause=Cause.QUOTA, error=fact.error)
    decision = decide(_failing(before.tries, Cause.QUOTA, fact, at), retries, at)
    return replace(before, ready_at=decision.until if isinstance(decision, Wait) else at)


def _failing(tries: int, cause: Cause, fact: _Failure, at: datetime) -> Failing:
    asked, days = (fact.retry_after, fact.days) if isinstance(fact, PartitionFailed) else (None, None)
    ages = not _is_of_load(fact)
    return Failing(fact.key, tries, cause, at, seed=fact.run_id, retry_after=asked, ages=ages, days=days or 1)


def _is_of_load(fact: _Failure) -> bool:
    return isinstance(fact, PartitionFailed) and fact.failed_stage is Stage.LOAD


def _is_old(work: Work | None, fact: _Failure, standing: Standing) -> bool:
    """Tell whether a failure says nothing new: a newer run was tried, or the partition is good without it."""
    if work is not None and work.run_id is not None and fact.run_id < work.run_id:
        return True
    if standing.authority is None or (work is not None and _judges(work, fact.run_id)):
        return False
    again = isinstance(fact, PartitionJudged) and fact.revalidation_id is not None
    return again or fact.run_id < standing.authority


def _judges(work: Work, run_id: RunId) -> bool:
    return work.kind is WorkKind.JUDGE and work.run_id == run_id


def _is_newest(work: Work, run_id: RunId) -> bool:
    """Tell whether a run is none that the work waits for: it waits for a newer one."""
    return work.run_id is not None and run_id <= work.run_id


def _lane(standing: Standing, otherwise: Lane) -> Lane:
    """Return the lane of a partition; one that consumers can read is only refreshed."""
    return Lane.REFRESH if standing.availability.readable else otherwise
