"""R-CTL-4, R-CTL-9, R-CTL-10: claims are exclusive, ready, fenced and within the budget, on each database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from sealbook.errors import InvalidInput
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.pauses import PauseCause, Scope, add_pause, remove_pauses
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.schedule.tables import spending
from sealbook.model.claims import Lease, Waiting
from sealbook.model.retry import Stop
from sealbook.model.selection import Selection
from sealbook.model.work import Lane, WorkKind
from tests.support.schedule import NOW, SetClock, key_of, open_work, work_in, work_of

TERMS = Terms(["demo"])
MINUTE = timedelta(minutes=1)
ALL_FRESH: dict[str, Any] = {
    "shares": {lane: 97 if lane is Lane.FRESH else 1 for lane in Lane},
    "expected": {("demo", lane): 0 for lane in Lane},
}
"""All of a small budget is for fresh work: nothing is kept for what others might ask for."""


@pytest.fixture
def clock() -> SetClock:
    """The ledger's time."""
    return SetClock()


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    """A ledger on each database that goes by the clock."""
    with open_ledger(ledger_url, clock=clock) as opened:
        yield opened


def claimed(ledger: Ledger, holder: str = "ann", limit: int = 10, terms: Terms = TERMS) -> list[str]:
    """Return the customers and days that were claimed."""
    claims = ledger.scheduler.claim(holder, terms, limit=limit, lease=MINUTE)
    return sorted(f"{claim.key.customer_id}{claim.key.logical_date.day}" for claim in claims)


def test_what_is_open_is_claimed_once(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a", day)) for day in range(5)])
    assert claimed(ledger, "ann", limit=3) == ["a3", "a4", "a5"], "the newest days first"
    assert claimed(ledger, "bob") == ["a1", "a2"]
    assert claimed(ledger, "ann") == []


def test_a_claim_says_what_to_do(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a"), Lane.RETRY, cost=3)])
    claims = ledger.scheduler.claim("ann", TERMS, limit=1, lease=MINUTE)
    [claim] = claims
    assert (claim.key, claim.lane, claim.kind, claim.requests) == (
        key_of("a"),
        Lane.RETRY,
        WorkKind.FETCH,
        3,
    )
    assert claims.fences == {claim.key: claim.fence}
    assert (claims.holder, claims.expires_at, claims.waiting) == ("ann", NOW + MINUTE, None)
    row = work_in(ledger)[claim.key]
    assert (row.holder, row.fence, row.expires_at) == ("ann", claim.fence, NOW + MINUTE)


def test_what_is_not_ready_is_not_claimed_and_holds_nothing_up(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-9: in every lane, behind work that waits stands work that is ready."""
    later = NOW + 5 * MINUTE
    for number, lane in enumerate(Lane):
        customer = f"c{number}"
        open_work(ledger, [work_of(key_of(customer, day), lane, ready_at=later) for day in (1, 2, 3)])
        open_work(ledger, [work_of(key_of(customer, day), lane) for day in (0, 4)])
    first = claimed(ledger, limit=100)
    assert first == sorted(f"c{number}{day}" for number in range(4) for day in (1, 5))
    nothing = ledger.scheduler.claim("bob", TERMS, limit=100, lease=MINUTE)
    assert (nothing.waiting, nothing.next_at) == (Waiting.IDLE, NOW + MINUTE), "then a lease may run out"
    clock.move(minutes=5)
    assert len(claimed(ledger, "bob", limit=100)) == 20


def test_stopped_and_paused_work_is_not_claimed(ledger: Ledger) -> None:
    stopped = work_of(key_of("a"))
    object.__setattr__(stopped.work, "stop", Stop.MANUAL)
    paused = work_of(key_of("b"))
    object.__setattr__(paused, "paused", True)
    open_work(ledger, [stopped, paused])
    nothing = ledger.scheduler.claim("ann", TERMS, limit=9)
    assert (list(nothing), nothing.waiting, nothing.next_at) == ([], Waiting.IDLE, None)


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (Scope("demo"), []),
        (Scope("demo", "a"), ["b1", "b1"]),
        (Scope("demo", query_name="clicks"), ["a1", "b1"]),
        (Scope("demo", "a", "clicks"), ["a1", "b1", "b1"]),
        (Scope("other"), ["a1", "a1", "b1", "b1"]),
    ],
)
def test_pauses_keep_their_scope_alone(
    ledger: Ledger, clock: SetClock, scope: Scope, left: list[str]
) -> None:
    """R-CTL-7: the account, the query or the source waits until the time that was named, and nothing else."""
    open_work(
        ledger, [work_of(key_of(customer, 0, query)) for customer in "ab" for query in ("clicks", "costs")]
    )
    until = NOW + 10 * MINUTE
    ledger._database.write(
        lambda c: add_pause(c, scope, PauseCause.QUOTA, until=until, at=NOW, actor="demo", reason="used up")
    )
    assert claimed(ledger, limit=99) == left
    if len(left) < 4:
        gated = ledger.scheduler.claim("bob", TERMS, limit=99)
        assert gated.waiting is Waiting.GATED
        assert NOW < (gated.next_at or NOW) <= until
    clock.move(minutes=10)
    assert len(claimed(ledger, "bob", limit=99)) == 4, "leases ran out meanwhile"


def test_a_pause_without_an_end_holds_until_it_is_removed(ledger: Ledger, clock: SetClock) -> None:
    open_work(ledger, [work_of(key_of("a"))])
    scope = Scope("demo", "a")
    ledger._database.write(
        lambda c: add_pause(c, scope, PauseCause.OPERATOR, until=None, at=NOW, actor="ann", reason="so")
    )
    clock.move(days=400)
    assert claimed(ledger) == []
    assert ledger._database.write(lambda c: remove_pauses(c, scope)) == 1
    assert claimed(ledger) == ["a1"]


def test_a_lease_that_ran_out_is_taken_over_under_a_higher_fence(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-4: the holder that lost it can renew, release and end nothing."""
    open_work(ledger, [work_of(key_of("a")), work_of(key_of("b"))])
    first = ledger.scheduler.claim("ann", TERMS, limit=9, lease=MINUTE)
    clock.move(seconds=59)
    assert claimed(ledger, "bob") == []
    assert ledger.scheduler.heartbeat("ann", first.fences, MINUTE) == first.fences.keys()
    clock.move(seconds=61)
    second = ledger.scheduler.claim("bob", TERMS, limit=1, lease=MINUTE)
    [claim] = second
    assert claim.fence > first.fences[claim.key]
    assert ledger.scheduler.heartbeat("ann", first.fences, MINUTE) == set(), "what ran out is free for all"
    assert ledger.scheduler.release(first.fences) == set()
    assert ledger.scheduler.heartbeat("bob", second.fences, MINUTE) == {claim.key}


def test_a_lease_is_told_of_until_it_runs_out(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-4: whoever works by hand asks who is at it."""
    schedule = ledger.reader.schedule
    one, two = key_of("a"), key_of("b")
    open_work(ledger, [work_of(one), work_of(two), work_of(key_of("c"), ready_at=NOW + timedelta(days=1))])
    assert schedule.held() == []
    claims = ledger.scheduler.claim("ann", TERMS, limit=9)
    assert schedule.held() == [Lease(key, "ann", NOW, claims.expires_at) for key in (one, two)]
    assert [each.key for each in schedule.held(Selection(customers="b"))] == [two]
    clock.now = claims.expires_at
    assert schedule.held() == []


def test_a_fence_rises_though_the_row_was_gone(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-4: an old holder does not get in by the door of work that was opened anew."""
    open_work(ledger, [work_of(key_of("a"))])
    first = ledger.scheduler.claim("ann", TERMS, limit=1).fences
    ledger._database.write(lambda c: c.exec_driver_sql("DELETE FROM work"))
    open_work(ledger, [work_of(key_of("a"))])
    clock.move(seconds=1)
    second = ledger.scheduler.claim("bob", TERMS, limit=1).fences
    assert second[key_of("a")] > first[key_of("a")]
    assert ledger.scheduler.heartbeat("ann", first) == set()


def test_a_fence_rises_though_the_clock_went_back(ledger: Ledger, clock: SetClock) -> None:
    open_work(ledger, [work_of(key_of("a"), ready_at=NOW - timedelta(days=9))])
    fences: list[int] = []
    for _ in range(3):
        claims = ledger.scheduler.claim("ann", TERMS, limit=1)
        fences += claims.fences.values()
        ledger.scheduler.release(claims.fences)
        clock.move(days=-1)
    assert fences == sorted(set(fences))


def test_what_is_released_is_free_at_once(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a"))])
    claims = ledger.scheduler.claim("ann", TERMS, limit=9)
    assert ledger.scheduler.release(claims.fences) == {key_of("a")}
    assert claimed(ledger, "bob") == ["a1"]


def test_a_budget_is_reserved_and_settled(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-10: reserved before, spent or given back after, for any 24 hours."""
    terms = Terms(["demo"], budgets={"demo": 20}, **ALL_FRESH)
    open_work(ledger, [work_of(key_of("a", day), cost=4) for day in range(9)])
    claims = ledger.scheduler.claim("ann", terms, limit=9)
    assert len(claims) == 5
    [reservation] = claims.reservations
    assert (reservation.source, reservation.lane, reservation.requests) == ("demo", Lane.FRESH, 20)
    gated = ledger.scheduler.claim("bob", terms, limit=9)
    assert gated.waiting is Waiting.GATED
    for _ in range(2):  # the second time there is nothing left to settle
        ledger.scheduler.settle({reservation.id: 9})
    assert len(ledger.scheduler.claim("bob", terms, limit=9)) == 2
    clock.move(hours=24, minutes=4)
    assert len(ledger.scheduler.claim("cy", terms, limit=9)) == 0, "nine of them may be a day old, or not"
    clock.move(minutes=1)
    assert len(ledger.scheduler.claim("cy", terms, limit=9)) == 3, "what bob reserved ran out, and is spent"
    ledger.scheduler.settle({reservation.id: 0})
    assert len(ledger.scheduler.claim("cy", terms, limit=9)) == 0, "an id is never used again"


def test_what_was_spent_is_forgotten_after_a_month(ledger: Ledger, clock: SetClock) -> None:
    """However long a loop works, and though no worker of it is ever lost, its spending takes no more room."""
    terms = Terms(["demo"], budgets={"demo": 20}, **ALL_FRESH)
    open_work(ledger, [work_of(key_of("a", day)) for day in range(40)])
    for _ in range(40):
        [reservation] = ledger.scheduler.claim("ann", terms, limit=1).reservations
        ledger.scheduler.settle({reservation.id: 1})
        clock.move(hours=24)
    with ledger._database.read() as connection:
        assert connection.execute(select(func.count()).select_from(spending)).scalar_one() == 32


def test_what_a_dead_worker_had_reserved_is_spent(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-10: nobody knows how far it came; and a live one keeps what it has reserved."""
    terms = Terms(["demo"], budgets={"demo": 4}, **ALL_FRESH)
    open_work(ledger, [work_of(key_of("a", day)) for day in range(9)])
    claims = ledger.scheduler.claim("ann", terms, limit=3, lease=MINUTE)
    clock.move(seconds=50)
    ledger.scheduler.heartbeat("ann", claims.fences, MINUTE)
    clock.move(minutes=2)
    assert len(ledger.scheduler.claim("bob", terms, limit=9)) == 1
    clock.move(hours=24, minutes=3)
    assert len(ledger.scheduler.claim("cy", terms, limit=9)) == 3, "what bob reserved ran out later"


def test_what_asks_nothing_of_a_source_needs_no_budget(ledger: Ledger) -> None:
    """R-CTL-9: it stands behind hundreds that the budget holds back."""
    terms = Terms(["demo"], budgets={"demo": 0})
    open_work(ledger, [work_of(key_of("a", day)) for day in range(300)])
    open_work(ledger, [work_of(key_of("a", -day), kind=WorkKind.LOAD) for day in (1, 2)])
    claims = ledger.scheduler.claim("ann", terms, limit=9)
    assert [claim.kind for claim in claims] == [WorkKind.LOAD] * 2
    assert claims.reservations == ()


def test_what_is_too_dear_does_not_hold_up_what_is_not(ledger: Ledger) -> None:
    terms = Terms(["demo"], budgets={"demo": 10}, **ALL_FRESH)
    open_work(ledger, [work_of(key_of("a", day), cost=11) for day in range(20)])
    open_work(ledger, [work_of(key_of("a", -1), cost=10)])
    assert [claim.requests for claim in ledger.scheduler.claim("ann", terms, limit=9)] == [10]


def test_only_what_is_asked_for_is_claimed(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a"), Lane.BACKFILL), work_of(key_of("b"), Lane.RETRY)])
    open_work(ledger, [work_of(key_of("c", source="other"))])
    assert claimed(ledger, terms=Terms(["other"])) == ["c1"]
    assert claimed(ledger, terms=Terms(["demo"], lanes=[Lane.RETRY])) == ["b1"]


@pytest.mark.parametrize("lane", Lane)
def test_one_customer_with_half_of_all_work_gets_its_turn_and_no_more(ledger: Ledger, lane: Lane) -> None:
    """R-CTL-10: ten thousand days of one customer do not delay another one's three."""
    open_work(ledger, [work_of(key_of("big", day), lane) for day in range(500)])
    others = [f"c{number}" for number in range(20)]
    open_work(ledger, [work_of(key_of(customer, day), lane) for customer in others for day in range(3)])
    served: Counter[str] = Counter()
    while sum(count for customer, count in served.items() if customer != "big") < 60:
        served.update(claim.key.customer_id for claim in ledger.scheduler.claim("ann", TERMS, limit=7))
    assert served["big"] <= 4 + 7, "as many turns as any other, and what was left of the last batch"


def test_weights_count(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of(customer, day)) for customer in "ab" for day in range(300)])
    terms = Terms(["demo"], weights={("demo", "a"): 3})
    served = Counter(
        claim.key.customer_id for _ in range(10) for claim in ledger.scheduler.claim("ann", terms, limit=20)
    )
    assert served == {"a": 150, "b": 50}


def test_who_was_idle_has_no_arrears(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a", day)) for day in range(300)])
    claimed(ledger, limit=100)
    open_work(ledger, [work_of(key_of("b", day)) for day in range(300)])
    served = Counter(name[0] for name in claimed(ledger, limit=100))
    assert abs(served["a"] - served["b"]) <= 1


def test_threads_never_claim_the_same_and_never_overspend(ledger: Ledger) -> None:
    """R-CTL-4, R-CTL-10: however many claim at once."""
    terms = Terms(["demo"], budgets={"demo": 150}, **ALL_FRESH)
    open_work(ledger, [work_of(key_of(f"c{number % 13}", number)) for number in range(400)])

    def work(holder: str) -> list[object]:
        return [claim.key for _ in range(8) for claim in ledger.scheduler.claim(holder, terms, limit=7)]

    with ThreadPoolExecutor(6) as threads:
        keys = [key for found in threads.map(work, "abcdef") for key in found]
    assert len(keys) == len(set(keys)) == 150


def test_bad_terms(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="weight"):
        Terms(["demo"], weights={("demo", "a"): 0})
    with pytest.raises(InvalidInput, match="limit"):
        ledger.scheduler.claim("ann", TERMS, limit=0)
    with pytest.raises(InvalidInput, match="holder"):
        ledger.scheduler.claim("", TERMS, limit=1)
