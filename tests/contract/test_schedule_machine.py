"""R-CTL-4, R-CTL-9, R-CTL-10: any history of claims, on each database, against a model of the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from sealbook.ledger import open_ledger
from sealbook.ledger.schedule.pauses import Scope
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model import PartitionKey
from sealbook.model.claims import Claims, Waiting
from sealbook.model.retry import Jitter, Retries, RetryPolicies
from sealbook.model.work import Lane, WorkKind
from tests.support.ledger import accept
from tests.support.schedule import NOW, SetClock, key_of, open_work, work_in, work_of

KEYS = [key_of(customer, day) for customer in "abc" for day in range(3)]
HOLDERS = ("ann", "bob", "cy")
LEASE = timedelta(minutes=10)
BUDGET = 6
DAY = timedelta(hours=24)
WAIT = timedelta(minutes=4)
RETRIES = Retries((WAIT,), Jitter.NONE, max_attempts=None)
TERMS = Terms(["demo"], budgets={"demo": BUDGET}, expected={("demo", lane): 0 for lane in Lane})
WHO: dict[str, Any] = {"actor": "ann", "reason": "so"}


@dataclass
class Item:
    """The reference: the work of a partition, and who has it until when."""

    ready_at: datetime
    asks: bool
    holder: str | None = None
    fence: int | None = None
    until: datetime = NOW
    tries: int = 0

    def lapse(self, now: datetime) -> None:
        """Its holder is gone: somebody takes over at once the first time, and after a wait from then on."""
        self.holder = self.fence = None
        if self.tries:
            self.ready_at = now + WAIT
        self.tries += 1

    def is_to_load(self, now: datetime) -> None:
        """It was accepted: that asks no source, and is new work."""
        self.asks, self.ready_at, self.tries = False, now, 0


@dataclass
class Spent:
    """Requests that were reserved: spent at a moment once they are settled, or their holder is gone."""

    requests: int
    holder: str
    until: datetime
    spent_at: datetime | None = None


class ScheduleMachine(RuleBasedStateMachine):
    """Does the same to a ledger and to the reference; time only goes on."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.clock = SetClock()
        self.ledger = open_ledger(url, clock=self.clock, retries=RetryPolicies(RETRIES))
        self.items: dict[PartitionKey, Item] = {}
        self.paused: set[str] = set()
        self.spending: dict[int, Spent] = {}
        self.old: list[dict[PartitionKey, int]] = []
        self.highest: dict[PartitionKey, int] = {}
        self.judged = 0

    @rule(minutes=st.sampled_from([1, 4, 11, 60, 24 * 60]))
    def time_passes(self, minutes: int) -> None:
        self.clock.move(minutes=minutes)

    @rule(
        keys=st.lists(st.sampled_from(KEYS), min_size=1, unique=True),
        lane=st.sampled_from(Lane),
        wait=st.sampled_from([0, 0, 0, 15]),
        asks=st.sampled_from([True, True, False]),
    )
    def open(self, keys: list[PartitionKey], lane: Lane, wait: int, asks: bool) -> None:
        new = [key for key in keys if key not in self.items]
        ready_at = self.clock.now + timedelta(minutes=wait)
        kind = WorkKind.FETCH if asks else WorkKind.JUDGE
        open_work(self.ledger, [work_of(key, lane, kind=kind, ready_at=ready_at) for key in new])
        self.items |= {key: Item(ready_at, asks) for key in new}

    @rule(customer=st.sampled_from("abc"))
    def pause_or_resume(self, customer: str) -> None:
        if customer in self.paused:
            self.ledger.pauses.resume(Scope("demo", customer), **WHO)
        else:
            self.ledger.pauses.pause(Scope("demo", customer), **WHO)
        self.paused ^= {customer}

    @rule(holder=st.sampled_from(HOLDERS), limit=st.integers(1, 5))
    def claim(self, holder: str, limit: int) -> None:
        now = self.clock.now
        for item in self.items.values():
            if item.holder is not None and item.until < now:
                item.lapse(now)
        latest = self.latest()
        for spent in self.spending.values():
            if spent.spent_at is None and spent.until < now:
                spent.spent_at = max(spent.until, latest)
        ready = {
            key: item
            for key, item in self.items.items()
            if item.holder is None and item.ready_at <= now and key.customer_id not in self.paused
        }
        left = BUDGET - self.counted(now)
        free = sum(not item.asks for item in ready.values())
        expected = min(limit, free + min(left, len(ready) - free))
        claims = self.ledger.scheduler.claim(holder, TERMS, limit=limit, lease=LEASE)
        assert len(claims) == expected, "as much as is ready and within the budget, and no more"
        self.check(claims, ready)
        for claim in claims:
            item = self.items[claim.key]
            assert claim.fence > self.highest.get(claim.key, 0), "each claim raises the fence"
            self.highest[claim.key] = item.fence = claim.fence
            item.holder, item.until = holder, now + LEASE
        if claims.claims:
            self.old.append(claims.fences)
        for each in claims.reservations:
            self.spending[each.id] = Spent(each.requests, holder, now + LEASE)

    def check(self, claims: Claims, ready: dict[PartitionKey, Item]) -> None:
        assert {claim.key for claim in claims} <= ready.keys()
        asked = sum(claim.requests for claim in claims)
        assert asked == sum(ready[claim.key].asks for claim in claims)
        assert asked == sum(each.requests for each in claims.reservations)
        if claims.claims:
            assert claims.waiting is None
            return
        now = self.clock.now
        waits = any(item.holder is None and item.ready_at <= now for item in self.items.values())
        assert claims.waiting is (Waiting.GATED if waits else Waiting.IDLE)

    def counted(self, now: datetime) -> int:
        """Count requests that are reserved, or were spent in a bucket that is not a whole day old."""
        return sum(
            spent.requests
            for spent in self.spending.values()
            if spent.spent_at is None or _bucket(spent.spent_at) + DAY + timedelta(minutes=5) > now
        )

    def latest(self) -> datetime:
        """Return when something was last spent: nothing is spent before that."""
        times = [_bucket(each.spent_at) for each in self.spending.values() if each.spent_at and each.requests]
        return max(times, default=datetime.min.replace(tzinfo=UTC))

    def held(self, fences: dict[PartitionKey, int]) -> set[PartitionKey]:
        return {key for key, fence in fences.items() if key in self.items and self.items[key].fence == fence}

    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        if self.old:
            fences = data.draw(st.sampled_from(self.old))
            holder = data.draw(st.sampled_from(HOLDERS))
            held = {key for key in self.held(fences) if self.items[key].until >= self.clock.now}
            assert self.ledger.scheduler.heartbeat(holder, fences, LEASE) == held, "what ran out is lost"
            for key in held:
                self.items[key].until = self.clock.now + LEASE
            for spent in self.spending.values():
                if spent.holder == holder and spent.spent_at is None and spent.until >= self.clock.now:
                    spent.until = self.clock.now + LEASE

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.old:
            fences = data.draw(st.sampled_from(self.old))
            held = self.held(fences)
            assert self.ledger.scheduler.release(fences) == held
            for key in held:
                self.items[key].holder = self.items[key].fence = None

    @rule(data=st.data())
    def judge(self, data: st.DataObject) -> None:
        """What is held is judged, and the rest is said to be lost."""
        if self.old:
            fences = data.draw(st.sampled_from(self.old))
            held = self.held(fences)
            self.judged += 1
            judged = self.ledger.verdicts.judge_under([accept(key, self.judged) for key in fences], fences)
            assert {state.key for state in judged.states} == held
            assert set(judged.lost) == fences.keys() - held
            for key in held:
                self.items[key].is_to_load(self.clock.now)

    @rule(data=st.data(), spent=st.integers(0, 3))
    def settle(self, data: st.DataObject, spent: int) -> None:
        if self.spending:
            number = data.draw(st.sampled_from(sorted(self.spending)))
            found = self.spending[number]
            made = min(spent, found.requests)
            for requests in (made, 99):  # what is settled already stays so
                self.ledger.scheduler.settle({number: requests})
            if found.spent_at is None:
                found.requests, found.spent_at = made, max(self.clock.now, self.latest())

    @invariant()
    def rows_agree(self) -> None:
        rows = work_in(self.ledger)
        assert rows.keys() == self.items.keys()
        for key, item in self.items.items():
            if item.fence is not None:
                assert (rows[key].holder, rows[key].fence) == (item.holder, item.fence)

    @invariant()
    def the_budget_is_never_overspent(self) -> None:
        assert sum(self.ledger.reader.schedule.spent().values()) <= BUDGET

    def teardown(self) -> None:
        self.ledger.close()


def _bucket(at: datetime) -> datetime:
    return at.replace(minute=at.minute - at.minute % 5, second=0, microsecond=0)


def test_any_history(new_ledger_url: Callable[[], str]) -> None:
    run_state_machine_as_test(
        lambda: ScheduleMachine(new_ledger_url()),  # type: ignore[arg-type]  # it only calls it
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
