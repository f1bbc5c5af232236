"""R-CTL-2, R-CTL-4: open work follows every fact in its transaction, and an old fence changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sealbook.errors import QuotaScope
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.work.rows import OpenWork
from sealbook.model import PartitionKey, RunId, Status
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, PartitionSealed, Stage
from sealbook.model.retry import Cause, Jitter, Retries, RetryPolicies, Stop
from sealbook.model.work import Lane, WorkKind
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import staged
from tests.support.schedule import NOW, SetClock, open_work, work_in, work_of

TERMS = Terms(["google_ads"])
MINUTE = timedelta(minutes=1)
RETRIES = RetryPolicies(Retries(jitter=Jitter.NONE, max_attempts=3))
WHO: dict[str, Any] = {"actor": "ann", "reason": "to try it"}


@pytest.fixture
def clock() -> SetClock:
    """The ledger's time."""
    return SetClock()


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    """A ledger on each database that goes by the clock."""
    with open_ledger(ledger_url, clock=clock, retries=RETRIES) as opened:
        yield opened


def failed(
    run: int = 1,
    error_class: ErrorClass = ErrorClass.TRANSIENT,
    *,
    stage: Stage = Stage.EXTRACT,
    retry_after: float | None = None,
    scope: QuotaScope | None = None,
    key: PartitionKey = KEY,
) -> PartitionFailed:
    return PartitionFailed(
        key=key,
        run_id=run_id(run),
        attempt="1",
        failed_stage=stage,
        error_class=error_class,
        error="no answer",
        retry_after=retry_after,
        quota_scope=scope,
    )


def sealed(run: int = 1) -> PartitionSealed:
    return PartitionSealed(
        key=KEY,
        run_id=run_id(run),
        schema_version="1",
        record_count=10,
        payload_bytes=1,
        payload_sha256="a" * 64,
        query_hash="b" * 64,
        extracted_at=NOW,
    )


def the_work(ledger: Ledger) -> OpenWork:
    [row] = work_in(ledger).values()
    return row


def test_what_succeeds_by_hand_opens_nothing(ledger: Ledger) -> None:
    ledger.runs.tell([sealed()])
    ledger.judge([accept(KEY, 1)])
    ledger.pointers.swap([staged(KEY, 1)])
    assert work_in(ledger) == {}


def test_a_failure_waits_longer_each_time_and_then_stops(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-2, R-CTL-5: whoever worked on it."""
    for run, minutes in ((1, 5), (2, 30)):
        ledger.runs.tell([failed(run)])
        row = the_work(ledger)
        assert (row.work.lane, row.work.kind, row.work.tries) == (Lane.RETRY, WorkKind.FETCH, run)
        assert row.work.ready_at == clock.now + timedelta(minutes=minutes)
        ledger.runs.tell([failed(run)])
        assert the_work(ledger) == row, "told twice, it counts once"
        clock.move(hours=1)
    ledger.runs.tell([failed(3)])
    row = the_work(ledger)
    assert (row.work.stop, row.work.tries, row.stopped_at) == (Stop.MAX_ATTEMPTS, 3, clock.now)
    ledger.judge([accept(KEY, 4)])
    assert the_work(ledger).work.kind is WorkKind.LOAD, "somebody did it all the same"


def test_a_rejection_waits_and_a_requeue_is_judged_again_at_once(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-3, R-VER-6."""
    ledger.judge([reject(KEY, 1, error="12 rows have no date")])
    row = the_work(ledger)
    assert (row.work.cause, row.work.error) == (Cause.REJECTED, "12 rows have no date")
    assert row.work.ready_at > clock.now
    ledger.requeue([KEY], **WHO)
    row = the_work(ledger)
    assert (row.work.kind, row.work.run_id, row.work.ready_at) == (WorkKind.JUDGE, run_id(1), clock.now)
    assert row.work.tries == 0


def test_a_permanent_failure_is_parked(ledger: Ledger) -> None:
    ledger.runs.tell([failed(1, ErrorClass.PERMANENT)])
    assert the_work(ledger).work.stop is Stop.PERMANENT
    assert len(ledger.scheduler.claim("ann", TERMS, limit=1)) == 0


def test_a_quota_costs_no_attempt_and_pauses_its_account_alone(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-7: until the time that the server names."""
    open_work(ledger, [work_of(KEY), work_of(OTHER)])
    ledger.runs.tell([failed(1, ErrorClass.QUOTA, retry_after=600)])
    rows = work_in(ledger)
    assert (rows[KEY].work.tries, rows[KEY].work.lane) == (0, Lane.FRESH)
    assert len(ledger.scheduler.claim("ann", TERMS, limit=9)) == 0, "the other day is of the same account"
    clock.move(seconds=601)
    assert {claim.key for claim in ledger.scheduler.claim("ann", TERMS, limit=9)} == {KEY, OTHER}


def test_a_quota_that_the_source_shares_pauses_all_of_it_and_no_other(
    ledger: Ledger, clock: SetClock
) -> None:
    """R-CTL-7: just its scope, the account or the source."""
    stranger, elsewhere = replace(KEY, customer_id="9999999999"), replace(KEY, source="other")
    terms = Terms(["google_ads", "other"])
    open_work(ledger, [work_of(KEY), work_of(stranger), work_of(elsewhere)])
    ledger.runs.tell([failed(1, ErrorClass.QUOTA, retry_after=600, scope=QuotaScope.SOURCE)])
    assert [claim.key for claim in ledger.scheduler.claim("ann", terms, limit=9)] == [elsewhere]
    clock.move(seconds=601)
    claimed = {claim.key for claim in ledger.scheduler.claim("bob", terms, limit=9)}
    assert claimed >= {KEY, stranger}


def test_a_quota_with_less_of_a_wait_does_not_cut_a_pause_short(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-7: until the time that the server named, also for whom it answered by then."""
    ledger.runs.tell([failed(1, ErrorClass.QUOTA, retry_after=600)])
    ledger.runs.tell([failed(1, ErrorClass.QUOTA, retry_after=20, key=OTHER)])
    [pause] = ledger.reader.schedule.pauses()
    assert pause.until == clock.now + timedelta(seconds=600)
    ledger.runs.tell([failed(2, ErrorClass.QUOTA, retry_after=900, key=OTHER)])
    [pause] = ledger.reader.schedule.pauses()
    assert pause.until == clock.now + timedelta(seconds=900)


def test_the_way_of_a_partition_under_a_claim(ledger: Ledger) -> None:
    """R-CTL-4: its holder takes it all the way under one fence, and then nothing is open."""
    open_work(ledger, [work_of(KEY)])
    fences = ledger.scheduler.claim("ann", TERMS, limit=1).fences
    assert ledger.runs.tell([sealed()], fences) == []
    assert the_work(ledger).work.kind is WorkKind.JUDGE
    judged = ledger.verdicts.judge_under([accept(KEY, 1)], fences)
    assert ([state.status for state in judged.states], judged.lost) == ([Status.SUCCESS], [])
    row = the_work(ledger)
    assert (row.work.kind, row.holder, row.fence) == (WorkKind.LOAD, "ann", fences[KEY])
    assert ledger.pointers.swap([staged(KEY, 1)], fences).loaded == (KEY,)
    assert work_in(ledger) == {}
    assert ledger.scheduler.release(fences) == set()


def test_what_failed_is_let_go_of(ledger: Ledger) -> None:
    open_work(ledger, [work_of(KEY)])
    fences = ledger.scheduler.claim("ann", TERMS, limit=1).fences
    ledger.runs.tell([failed()], fences)
    row = the_work(ledger)
    assert (row.holder, row.expires_at, row.fence) == (None, None, fences[KEY])
    assert ledger.scheduler.heartbeat("ann", fences) == set()


@pytest.fixture
def lost(ledger: Ledger, clock: SetClock) -> dict[PartitionKey, int]:
    """Fences that somebody held too long: another has taken the work over, and is at it."""
    open_work(ledger, [work_of(KEY), work_of(OTHER)])
    old = ledger.scheduler.claim("ann", TERMS, limit=2, lease=MINUTE).fences
    ledger.scheduler.release({OTHER: old[OTHER]})
    clock.move(minutes=2)
    assert len(ledger.scheduler.claim("bob", TERMS, limit=9)) == 2
    return old


def test_an_old_fence_judges_nothing(ledger: Ledger, lost: dict[PartitionKey, int]) -> None:
    """R-CTL-4: neither a state, nor an attempt, nor an event, nor the schedule is changed."""
    before = work_in(ledger)
    judged = ledger.verdicts.judge_under([accept(KEY, 1), reject(OTHER, 1)], lost)
    assert (judged.states, judged.lost) == ([], [KEY, OTHER])
    assert ledger.state(KEY).attempt_count == ledger.state(OTHER).attempt_count == 0
    assert ledger.reader.partition_log.events(KEY) == []
    assert work_in(ledger) == before


def test_an_old_fence_tells_nothing(ledger: Ledger, lost: dict[PartitionKey, int]) -> None:
    """R-CTL-4: a failure of who lost it counts as none, and what it sealed is found where it lies."""
    before = work_in(ledger)
    assert ledger.runs.tell([failed(), sealed(2)], lost) == [KEY, KEY]
    assert ledger.reader.partition_log.events(KEY) == []
    assert work_in(ledger) == before


def test_an_old_fence_publishes_nothing(ledger: Ledger, lost: dict[PartitionKey, int]) -> None:
    """R-CTL-4: also where the authority is what it has staged."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    before = work_in(ledger)
    result = ledger.pointers.swap([staged(KEY, 1), staged(OTHER, 1)], lost)
    assert (result.lost, result.loaded) == ((KEY, OTHER), ())
    assert list(ledger.pointers.open_pointers()) == []
    assert work_in(ledger) == before


def test_of_a_batch_only_what_is_held_is_written(ledger: Ledger) -> None:
    open_work(ledger, [work_of(KEY), work_of(OTHER)])
    fences = ledger.scheduler.claim("ann", TERMS, limit=2).fences
    ledger.scheduler.release({OTHER: fences[OTHER]})
    judged = ledger.verdicts.judge_under([accept(OTHER, 1), accept(KEY, 1)], fences)
    assert ([state.key for state in judged.states], judged.lost) == ([KEY], [OTHER])


def test_a_run_that_is_sealed_late_takes_no_authority_from_a_newer_one(ledger: Ledger) -> None:
    """R-CTL-4: what a worker seals after it lost its lease is an ordinary sealed run."""
    ledger.judge([accept(KEY, 2)])
    ledger.runs.tell([sealed(1)])
    ledger.judge([accept(KEY, 1)])
    assert ledger.state(KEY).current_run_id == run_id(2)


def test_a_failed_refresh_leaves_what_is_published(ledger: Ledger) -> None:
    """A good day stays good, and stays in the lane of refreshes."""
    ledger.judge([accept(KEY, 1)])
    ledger.pointers.swap([staged(KEY, 1)])
    open_work(ledger, [work_of(KEY, Lane.REFRESH)])
    fences = ledger.scheduler.claim("ann", TERMS, limit=1).fences
    ledger.verdicts.judge_under([reject(KEY, 2)], fences)
    row = the_work(ledger)
    assert (row.work.lane, row.work.tries) == (Lane.REFRESH, 1)
    assert [pointer.run_id for pointer in ledger.pointers.open_pointers()] == [run_id(1)]


def test_a_rollback_closes_work_and_a_cancelled_run_opens_a_fetch(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1), accept(KEY, 2), reject(KEY, 3)])
    ledger.pointers.swap([staged(KEY, 2)])
    open_work(ledger, [work_of(KEY, Lane.REFRESH)])
    ledger.rollback(KEY, RunId(run_id(1)), **WHO)
    assert the_work(ledger).work.kind is WorkKind.LOAD, "the chosen run is not staged yet"
    ledger.pointers.swap([staged(KEY, 1)])
    assert work_in(ledger) == {}


def test_nothing_is_followed_when_nothing_is_written(ledger: Ledger) -> None:
    """R-CTL-2: work is changed in the transaction of the fact, or not at all."""
    ledger.judge([accept(KEY, 1)])
    open_work(ledger, [work_of(KEY), work_of(OTHER)])
    before = work_in(ledger)
    with pytest.raises(Exception, match="judged before"):
        ledger.judge([accept(OTHER, 1), reject(KEY, 1)])
    assert work_in(ledger) == before
