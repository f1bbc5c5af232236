"""R-CTL-4, R-CTL-10: what is lost with its worker, or comes to nothing, and clocks that jump."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model import RunStatus
from sealbook.model.claims import Claims
from sealbook.model.partition_events import PartitionFailed, Stage, read_fact
from sealbook.model.retry import Cause, Jitter, Retries, RetryPolicies, Stop
from sealbook.model.selection import Selection
from sealbook.model.work import LAPSED, Lane, Undone, WorkKind
from tests.support.schedule import NOW, SetClock, key_of, open_work, work_in, work_of

LEASE = timedelta(minutes=10)
WAIT = timedelta(minutes=5)
KEY = key_of("a")
BUDGET = Terms(["demo"], budgets={"demo": 3}, expected={("demo", lane): 0 for lane in Lane})


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def ledger(new_ledger_url: Callable[[], str], clock: SetClock) -> Iterator[Ledger]:
    retries = RetryPolicies(Retries((WAIT,), Jitter.NONE, max_attempts=3))
    with open_ledger(new_ledger_url(), clock=clock, retries=retries) as opened:
        yield opened


def claim(ledger: Ledger, holder: str = "ann") -> Claims:
    return ledger.scheduler.claim(holder, Terms(["demo"]), limit=9, lease=LEASE)


def test_what_ends_its_worker_each_time_is_not_claimed_for_ever(ledger: Ledger, clock: SetClock) -> None:
    """Taken over at once, then after a wait, and given up in the end; no attempt is counted."""
    open_work(ledger, [work_of(KEY)])
    assert len(claim(ledger)) == 1
    clock.move(minutes=11)
    assert len(claim(ledger, "bob")) == 1, "taken over at once"
    clock.move(minutes=11)
    assert len(claim(ledger, "cy")) == 0
    row = work_in(ledger)[KEY].work
    assert (row.tries, row.cause, row.error, row.ready_at) == (2, *LAPSED[:2], clock.now + WAIT)
    clock.move(minutes=5)
    assert len(claim(ledger, "cy")) == 1
    clock.move(minutes=11)
    assert len(claim(ledger)) == 0
    found = work_in(ledger)[KEY]
    assert (found.work.stop, found.stopped_at) == (Stop.MAX_ATTEMPTS, clock.now)
    assert ledger.state(KEY).attempt_count == 0


def test_one_lost_worker_does_not_have_a_sealed_run_given_up(ledger: Ledger, clock: SetClock) -> None:
    """However often it was rejected before: its last run is judged, or a second worker is lost over it."""
    rejected = work_of(KEY, kind=WorkKind.JUDGE, run_id=ledger.open_run())
    failures = replace(rejected.work, tries=2, cause=Cause.REJECTED, error="bad rows", failing_since=NOW)
    open_work(ledger, [replace(rejected, work=failures)])
    assert len(claim(ledger)) == 1
    clock.move(minutes=11)
    assert len(claim(ledger, "bob")) == 1
    assert (work_in(ledger)[KEY].work.tries, work_in(ledger)[KEY].work.stop) == (3, None)
    clock.move(minutes=11)
    assert len(claim(ledger, "cy")) == 0
    assert work_in(ledger)[KEY].work.stop is Stop.MAX_ATTEMPTS


def test_a_lease_that_ran_out_is_lost_though_nobody_took_over(ledger: Ledger, clock: SetClock) -> None:
    open_work(ledger, [work_of(KEY)])
    claims = claim(ledger)
    clock.move(minutes=10)
    assert ledger.scheduler.heartbeat("ann", claims.fences, LEASE) == {KEY}, "it lasts to its last moment"
    clock.move(minutes=10, seconds=1)
    assert ledger.scheduler.heartbeat("ann", claims.fences, LEASE) == set()


def test_what_was_not_done_waits(ledger: Ledger, clock: SetClock) -> None:
    """As after a failure, and as what it is; what needs another run is fetched, what cannot be is parked."""
    keys = [key_of("a", day) for day in range(4)]
    run = ledger.open_run()
    open_work(ledger, [work_of(key, kind=WorkKind.JUDGE, run_id=run) for key in keys])
    claims = claim(ledger)
    why = [
        Undone(Cause.TRANSIENT, "cannot be read"),
        Undone(Cause.TRANSIENT, "gone", fetch=True),
        Undone(Cause.PERMANENT, "no contract"),
    ]
    clock.move(minutes=1)
    done = ledger.scheduler.put_off(dict(zip(keys, why, strict=False)), claims.fences)
    assert done == set(keys[:3])
    rows = work_in(ledger)
    assert [(rows[key].work.kind, rows[key].work.tries, rows[key].work.stop) for key in keys] == [
        (WorkKind.JUDGE, 1, None),
        (WorkKind.FETCH, 1, None),
        (WorkKind.JUDGE, 1, Stop.PERMANENT),
        (WorkKind.JUDGE, 0, None),
    ]
    assert [rows[key].holder for key in keys] == [None, None, None, "ann"]
    assert rows[keys[0]].work.ready_at == clock.now + WAIT
    old = {key: fence - 1 for key, fence in claims.fences.items()}
    assert ledger.scheduler.put_off({keys[3]: why[0]}, old) == set(), "with an old fence nothing is changed"


def test_the_run_of_a_lost_worker_ends(ledger: Ledger, clock: SetClock) -> None:
    """Whoever takes over hears of it; the log of the run says so, and nothing else follows from that."""
    open_work(ledger, [work_of(KEY)])
    first = ledger.runs.open_run_under(claim(ledger).fences)
    ledger.runs.open_steps(Stage.EXTRACT, [first], [Selection(keys=[KEY])])
    assert ledger.reviser.left_runs() == {}, "its worker is at it"
    clock.move(minutes=11)
    taken = claim(ledger, "bob")
    assert taken.claims[0].left_run_id == first
    second = ledger.runs.open_run_under(taken.fences)
    before = work_in(ledger)
    ledger.runs.leave(first, [KEY], "its worker was lost")
    assert ledger.runs.end_runs([first]) == {first: RunStatus.FAILED}
    assert work_in(ledger) == before
    [fact] = [read_fact(each) for each in ledger.reader.partition_log.events(KEY)]
    assert isinstance(fact, PartitionFailed)
    assert (fact.run_id, fact.error) == (first, "its worker was lost")
    clock.move(minutes=11)
    claim(ledger)
    assert ledger.reviser.left_runs() == {second: [KEY]}
    ledger.reviser.forget_left({second: []})
    assert ledger.reviser.left_runs() == {second: [KEY]}, "of which nobody was told"
    ledger.reviser.forget_left({second: [KEY]})
    assert ledger.reviser.left_runs() == {}


def test_a_clock_that_jumps_overspends_no_budget(ledger: Ledger, clock: SetClock) -> None:
    """What was spent counts for a day, also if the clock was behind by then, or is ahead for a while."""
    long_ago = clock.now - timedelta(days=9)
    open_work(ledger, [work_of(key_of("a", day), ready_at=long_ago) for day in range(9)])

    def spend(limit: int) -> int:
        claims = ledger.scheduler.claim("ann", BUDGET, limit=limit, lease=LEASE)
        ledger.scheduler.settle({each.id: each.requests for each in claims.reservations})
        return sum(each.requests for each in claims)

    assert spend(1) == 1
    clock.move(hours=-12)
    assert spend(2) == 2
    clock.move(hours=25)  # 13 hours after the first by a clock that is right
    assert spend(9) == 0, "what was settled while it was behind is not a day old"
    clock.move(days=5)
    ledger.scheduler.claim("ann", BUDGET, limit=1, lease=timedelta(seconds=1))
    clock.move(seconds=2)
    ledger.scheduler.claim(
        "bob", BUDGET, limit=1, lease=LEASE
    )  # which settles what lapsed, and forgets what is old
    clock.move(days=-5, hours=-1)
    assert sum(ledger.reader.schedule.spent().values()) >= 3


def test_a_share_of_a_rate_is_kept_as_it_is(ledger: Ledger, clock: SetClock) -> None:
    """While requests are sent at it, it neither runs out nor comes down; who comes later waits for it."""
    assert ledger.rates.renew("demo", "ann", 1.0, LEASE) == 1.0
    clock.move(minutes=9)
    assert ledger.rates.renew("demo", "bob", 1.0, LEASE) == 0.0
    assert ledger.rates.keep("demo", "ann", LEASE)
    clock.move(minutes=9)
    assert ledger.rates.renew("demo", "bob", 1.0, LEASE) == 0.0
    clock.move(minutes=9)
    assert not ledger.rates.keep("demo", "ann", LEASE), "by now it has run out"
    assert ledger.rates.renew("demo", "bob", 1.0, LEASE) == 1.0
