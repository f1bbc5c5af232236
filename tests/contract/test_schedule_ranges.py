"""R-CTL-10: consecutive days of a customer and query are claimed as one request, on each database."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.pauses import Scope
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.work.rows import OpenWork
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey
from sealbook.model.claims import Claim, Waiting, ranges_of
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.ranges import DaysPerRequest, Stretch
from sealbook.model.retry import Cause, Jitter, Retries, RetryPolicies, Stop
from sealbook.model.shares import DEFAULT_SHARES, Flow, RangeDay, Shares, order_of
from sealbook.model.universe import AssetName
from sealbook.model.work import Lane, WorkKind
from tests.support.ledger import PostgresqlServer, accept, run_id
from tests.support.schedule import DAY, NOW, SetClock, key_of, open_work, work_in, work_of

WEEK = DaysPerRequest({AssetName("demo", query): (Stretch(0, 7),) for query in ("clicks", "costs")})
TERMS = Terms(["demo", "other"], ranges=WEEK)
ALL_FRESH: dict[str, Any] = {
    "shares": {lane: 97 if lane is Lane.FRESH else 1 for lane in Lane},
    "expected": {("demo", lane): 0 for lane in Lane},
}
RETRIES = RetryPolicies(Retries((timedelta(minutes=5),), Jitter.FULL, max_attempts=None))


@pytest.fixture
def clock() -> SetClock:
    """The ledger's time."""
    return SetClock()


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    """A ledger on each database that goes by the clock."""
    with open_ledger(ledger_url, clock=clock, retries=RETRIES) as opened:
        yield opened


def days_of(claims: list[Claim]) -> list[int]:
    return [(claim.key.logical_date - DAY).days for claim in claims]


def claimed(ledger: Ledger, limit: int = 100, terms: Terms = TERMS, holder: str = "ann") -> list[list[int]]:
    """Return the days of each range that was claimed; each costs one request, and keeps its own fence."""
    claims = ledger.scheduler.claim(holder, terms, limit=limit)
    found = ranges_of(claims)
    assert sum(claim.requests for claim in claims) == len(found)
    assert sum(each.requests for each in claims.reservations) == len(found)
    assert len(claims.fences) == len(claims)
    return [days_of(own) for own in found]


def tried(row: OpenWork, tries: int) -> OpenWork:
    return replace(row, work=replace(row.work, tries=tries))


@pytest.mark.parametrize("lane", Lane)
def test_consecutive_days_are_one_range_of_bounded_size(ledger: Ledger, lane: Lane) -> None:
    open_work(ledger, [work_of(key_of("a", day), lane) for day in (*range(20), 25, 26, 40)])
    sizes = sorted(len(days) for days in claimed(ledger))
    assert sizes == [1, 2, 6, 7, 7]
    assert claimed(ledger) == []


def test_a_range_has_one_lane_query_customer_and_number_of_tries(ledger: Ledger) -> None:
    """And only what is ready, free and to be fetched."""
    open_work(ledger, [work_of(key_of("a", day)) for day in (0, 2, 4, 6, 8, 10, 12)])
    others = [
        work_of(key_of("a", 1), Lane.BACKFILL),
        work_of(key_of("b", 3)),
        work_of(key_of("a", 3, "costs")),
        tried(work_of(key_of("a", 5)), 1),
        work_of(key_of("a", 7), ready_at=NOW + timedelta(hours=1)),
        work_of(key_of("a", 9), kind=WorkKind.LOAD),
        work_of(key_of("a", 11), cost=2),
    ]
    open_work(ledger, others)
    claims = ledger.scheduler.claim("ann", TERMS, limit=100)
    assert [len(own) for own in ranges_of(claim for claim in claims if claim.requests)] == [1] * 12
    assert sorted(claim.requests for claim in claims) == [0, *[1] * 11, 2], "what is loaded costs nothing"


def test_what_is_stopped_paused_or_held_is_no_part_of_a_range(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a", 3))])
    ledger.scheduler.claim("bob", TERMS, limit=1)
    stopped, paused = work_of(key_of("a", 1)), replace(work_of(key_of("a", 5)), paused=True)
    stopped = replace(stopped, work=replace(stopped.work, stop=Stop.MANUAL))
    open_work(ledger, [stopped, paused, *(work_of(key_of("a", day)) for day in (0, 2, 4, 6))])
    ledger.pauses.pause(Scope("demo", query_name="costs"), actor="ann", reason="so")
    open_work(ledger, [work_of(key_of("a", day, "costs")) for day in range(5)])
    assert claimed(ledger) == [[0], [2], [4], [6]]


def test_a_source_that_takes_one_day_is_asked_day_by_day(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a", day, source="other")) for day in range(5)])
    open_work(ledger, [work_of(key_of("a", day, "views")) for day in range(5)])
    assert claimed(ledger) == [[day] for day in (*range(5), *range(5))]


def test_no_range_goes_over_a_change_of_the_query(ledger: Ledger) -> None:
    first = DAY.toordinal()
    stretches = (Stretch(0, 1), Stretch(first + 3, 4), Stretch(first + 9, 30))
    terms = Terms(["demo"], ranges=DaysPerRequest({AssetName("demo", "clicks"): stretches}))
    open_work(ledger, [work_of(key_of("a", day), Lane.BACKFILL) for day in range(12)])
    assert claimed(ledger, terms=terms) == [[0], [1], [2], [3, 4, 5, 6], [7, 8], [9, 10, 11]]


def test_what_failed_is_claimed_in_halves_with_what_failed_as_often(ledger: Ledger) -> None:
    open_work(ledger, [tried(work_of(key_of("a", day), Lane.BACKFILL), day // 8) for day in range(32)])
    sizes = [len(days) for days in claimed(ledger)]
    assert sizes == [7, 1, 3, 3, 2, *[1] * 16]


def test_a_range_is_claimed_whole_or_by_the_next_batch(ledger: Ledger) -> None:
    """In two parts it would cost two requests; a batch smaller than a range takes what it can."""
    open_work(ledger, [work_of(key_of(customer, day)) for customer in "ab" for day in range(7)])
    assert claimed(ledger, limit=10) == [[0, 1, 2, 3, 4, 5, 6]]
    assert claimed(ledger, limit=3) == [[4, 5, 6]]
    assert claimed(ledger, limit=10) == [[0, 1, 2, 3]]


def test_a_budget_counts_requests_and_not_days(ledger: Ledger) -> None:
    terms = replace(TERMS, budgets={"demo": 3}, **ALL_FRESH)
    open_work(ledger, [work_of(key_of(customer, day)) for customer in "abcde" for day in range(7)])
    assert claimed(ledger, terms=terms) == [[0, 1, 2, 3, 4, 5, 6]] * 3
    gated = ledger.scheduler.claim("bob", terms, limit=99)
    assert gated.waiting is Waiting.GATED
    assert ledger.reader.schedule.spent() == {("demo", Lane.FRESH): 3}


def test_what_open_work_will_ask_for_is_what_its_claims_cost(ledger: Ledger) -> None:
    """In each lane, with what has failed before; what waits still is counted, too."""
    for number, lane in enumerate(Lane):
        rows = [work_of(key_of("abcd"[number], day), lane) for day in range(3 * number + 5)]
        open_work(
            ledger, [*rows, *(tried(work_of(key_of("e", 30 * number + day), lane), 1) for day in range(5))]
        )
    open_work(ledger, [work_of(key_of("f", day, source="other"), cost=2) for day in range(3)])
    wanted = ledger.reader.schedule.wanted(WEEK)
    assert wanted == {
        ("demo", Lane.FRESH): 1 + 2,
        ("demo", Lane.RETRY): 2 + 2,
        ("demo", Lane.REFRESH): 2 + 2,
        ("demo", Lane.BACKFILL): 2 + 2,
        ("other", Lane.FRESH): 6,
    }
    assert ledger.reader.schedule.wanted()["demo", Lane.FRESH] == 10
    claims = ledger.scheduler.claim("ann", TERMS, limit=99)
    assert sum(claim.requests for claim in claims) == sum(wanted.values())
    assert ledger.reader.schedule.wanted(WEEK) == {}


def test_customers_share_by_weight_whatever_their_ranges(ledger: Ledger) -> None:
    """A customer whose days have gaps asks more often for fewer days, and has as many turns."""
    open_work(ledger, [work_of(key_of("a", day)) for day in range(700)])
    open_work(ledger, [work_of(key_of("b", 2 * day)) for day in range(200)])
    terms = replace(TERMS, weights={("demo", "a"): 3})
    served: Counter[str] = Counter()
    for _ in range(8):
        claims = ledger.scheduler.claim("ann", terms, limit=80)
        served.update(own[0].key.customer_id for own in ranges_of(claims))
    assert served["a"] >= 60
    assert abs(served["a"] - 3 * served["b"]) <= 3


def test_of_a_range_that_others_are_writing_the_first_part_is_claimed(postgresql: PostgresqlServer) -> None:
    """What comes after the gap would be one more request than is reserved: it stays free."""
    with open_ledger(postgresql.create_ledger(), clock=SetClock()) as ledger:
        open_work(ledger, [work_of(key_of("a", day)) for day in range(7)])
        with ledger._database.engine.connect() as other, other.begin():
            middle = select(work).where(work.c.logical_date == key_of("a", 3).logical_date)
            other.execute(middle.with_for_update())
            assert claimed(ledger) == [[0, 1, 2]]
        assert claimed(ledger) == [[3, 4, 5, 6]]


WORK = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 25),
        st.sampled_from(Lane),
        st.sampled_from(["clicks", "costs"]),
        st.sampled_from([0, 0, 0, 1, 2]),
    ),
    min_size=3,
    max_size=60,
    unique_by=lambda each: each[:2],
).map(
    lambda chosen: [
        # By time no two have the same place in their flow; by day none do where there is one query.
        tried(
            work_of(
                key_of(customer, day, "clicks" if lane in (Lane.FRESH, Lane.BACKFILL) else query),
                lane,
                ready_at=NOW - timedelta(minutes=number * 7 % 61, seconds=number),
            ),
            tries,
        )
        for number, (customer, day, lane, query, tries) in enumerate(chosen)
    ]
)
WEIGHTS = st.dictionaries(st.sampled_from("abc").map(lambda name: ("demo", name)), st.integers(1, 4))


def test_range_by_range_it_is_what_the_model_says(new_ledger_url: Callable[[], str]) -> None:
    """So the rehearsal of a policy counts the same requests as its claims."""

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(rows=WORK, weights=WEIGHTS, days=st.integers(1, 9))
    def check(rows: list[OpenWork], weights: dict[tuple[str, str], int], days: int) -> None:
        ranges = DaysPerRequest({name: (Stretch(0, days),) for name in WEEK.stretches})
        terms = Terms(["demo"], weights=weights, ranges=ranges)
        shares: Shares[PartitionKey] = Shares(DEFAULT_SHARES, weights)
        with open_ledger(new_ledger_url(), clock=SetClock()) as ledger:
            open_work(ledger, rows)
            for row in rows:
                key, lane = row.key, row.work.lane
                day = RangeDay(
                    key.query_name, key.logical_date.toordinal(), row.work.tries, (Stretch(0, days),)
                )
                order = order_of(lane, key.logical_date, row.work.ready_at)
                shares.add(Flow(lane, key.source, key.customer_id), order, key, day=day)
            while (expected := shares.take(lambda _lane, _source: 1)) is not None:
                claims = ledger.scheduler.claim("ann", terms, limit=len(expected.items))
                [own] = ranges_of(claims)
                assert tuple(claim.key for claim in own) == expected.items
                assert {claim.lane for claim in own} == {expected.flow.lane}
            assert shares.requests.total() == 0
            assert len(ledger.scheduler.claim("ann", terms, limit=9)) == 0

    check()


BUDGET, PROCESSES = 60, 4


def _claim_all(url: str, told: Connection) -> None:
    """Claim until nothing more can be had, and tell what that was."""
    found: list[tuple[PartitionKey, int, int]] = []
    terms = replace(TERMS, budgets={"demo": BUDGET}, **ALL_FRESH)
    with open_ledger(url) as ledger:
        told.recv()  # all begin at once
        while claims := ledger.scheduler.claim(f"worker {os.getpid()}", terms, limit=11):
            found += ((claim.key, claim.fence, claim.requests) for claim in claims)
    told.send(found)


def test_processes_never_hold_the_same_day_and_never_overspend(
    ledger_url: str, processes: ForkServerContext
) -> None:
    """R-CTL-4, R-CTL-10: however many claim ranges at once."""
    with open_ledger(ledger_url) as ledger:
        now = ledger.reader.now()
        keys = [key_of(f"c{number}", day) for number in range(20) for day in range(40) if day % 10]
        open_work(ledger, [work_of(key, ready_at=now) for key in keys])
    pipes = [processes.Pipe() for _ in range(PROCESSES)]
    workers = [processes.Process(target=_claim_all, args=(ledger_url, theirs)) for _, theirs in pipes]
    for worker in workers:
        worker.start()
    for ours, _ in pipes:
        ours.send("go")
    found = [claim for ours, _ in pipes for claim in ours.recv()]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    claims = [key for key, _, _ in found]
    assert len(claims) == len(set(claims)), "no day is two workers'"
    assert sum(requests for _, _, requests in found) == BUDGET
    with open_ledger(ledger_url) as ledger:
        assert ledger.reader.schedule.spent() == {("demo", Lane.FRESH): BUDGET}
        held = {key: row.fence for key, row in work_in(ledger).items() if row.holder}
    assert held == {key: fence for key, fence, _ in found}


@pytest.mark.parametrize("bad", [0, 11, 30])
@pytest.mark.parametrize("error_class", [ErrorClass.TRANSIENT, ErrorClass.PERMANENT])
def test_one_bad_day_ends_up_alone_and_its_neighbours_are_good(
    ledger: Ledger, clock: SetClock, bad: int, error_class: ErrorClass
) -> None:
    """A range that failed waits as one, and is tried in halves; what fails alone for good is parked."""
    month = DaysPerRequest({AssetName("demo", "clicks"): (Stretch(0, 31),)})
    terms = Terms(["demo"], ranges=month)
    open_work(ledger, [work_of(key_of("a", day)) for day in range(31)])
    requests = 0
    for attempt in range(1, 7):
        claims = ledger.scheduler.claim("ann", terms, limit=99)
        found = ranges_of(claim for claim in claims if claim.kind is WorkKind.FETCH)
        requests += len(found)
        for own in found:
            if bad in days_of(own):
                ledger.runs.tell([_failed(claim.key, attempt, error_class, len(own)) for claim in own])
            else:
                ledger.judge([accept(claim.key, attempt) for claim in own])
        clock.move(minutes=5)
    rows = work_in(ledger)
    left = [key for key, row in rows.items() if row.work.kind is WorkKind.FETCH]
    assert left == [key_of("a", bad)]
    assert requests <= 1 + 3 * 5
    parked = error_class is ErrorClass.PERMANENT
    assert rows[left[0]].work.stop is (Stop.PERMANENT if parked else None)
    assert rows[left[0]].work.cause is (Cause.PERMANENT if parked else Cause.TRANSIENT)
    assert {row.work.kind for key, row in rows.items() if key != left[0]} == {WorkKind.LOAD}


def _failed(key: PartitionKey, attempt: int, error_class: ErrorClass, days: int) -> PartitionFailed:
    return PartitionFailed(
        key=key,
        run_id=run_id(attempt),
        attempt="1",
        failed_stage=Stage.EXTRACT,
        error_class=error_class,
        error="no answer",
        days=days if days > 1 else None,
    )


def test_a_quota_that_a_range_used_up_splits_nothing(ledger: Ledger, clock: SetClock) -> None:
    """R-CTL-7: it costs no attempt."""
    open_work(ledger, [work_of(key_of("a", day)) for day in range(7)])
    [own] = ranges_of(ledger.scheduler.claim("ann", TERMS, limit=9))
    ledger.runs.tell([_failed(claim.key, 1, ErrorClass.QUOTA, 7) for claim in own])
    assert {row.work.tries for row in work_in(ledger).values()} == {0}
    assert claimed(ledger) == []
    clock.move(minutes=5)
    assert claimed(ledger) == [[0, 1, 2, 3, 4, 5, 6]]
