"""R-CTL-6, R-CTL-10: the claim shares work out as `model.shares` does; lanes keep their shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.work.rows import OpenWork
from sealbook.model.shares import DEFAULT_SHARES, Flow, Shares, order_of
from sealbook.model.work import Lane
from tests.support.schedule import NOW, SetClock, key_of, open_work, work_of

CUSTOMERS = ["a", "b", "c", "d"]
DATED = (Lane.FRESH, Lane.BACKFILL)
WORK = st.lists(
    st.tuples(
        st.sampled_from(CUSTOMERS),
        st.integers(0, 40),
        # By their time all of a flow are alike here, so that they must cost the same.
        st.tuples(st.sampled_from(DATED), st.sampled_from([1, 1, 2, 5]))
        | st.tuples(st.sampled_from([Lane.RETRY, Lane.REFRESH]), st.just(1)),
    ),
    max_size=40,
    unique_by=lambda each: each[:2],
).map(
    lambda chosen: [work_of(key_of(customer, day), lane, cost=cost) for customer, day, (lane, cost) in chosen]
)
WEIGHTS = st.dictionaries(
    st.sampled_from(CUSTOMERS).map(lambda name: ("demo", name)), st.integers(1, 5), max_size=2
)


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A ledger on each database."""
    with open_ledger(ledger_url, clock=SetClock()) as opened:
        yield opened


def no_bound(lane: Lane, source: str) -> int:  # noqa: ARG001
    return 10**9


def add(shares: Shares[OpenWork], rows: list[OpenWork]) -> None:
    for row in rows:
        key = row.key
        flow = Flow(row.work.lane, key.source, key.customer_id)
        shares.add(flow, order_of(flow.lane, key.logical_date, row.work.ready_at), row, row.cost)


def test_one_by_one_it_is_what_the_model_says(new_ledger_url: Callable[[], str]) -> None:
    """Lanes, customers, weights, costs, and who comes back after it had nothing to do."""

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(first=WORK, second=WORK, weights=WEIGHTS, between=st.integers(0, 20))
    def check(
        first: list[OpenWork], second: list[OpenWork], weights: dict[tuple[str, str], int], between: int
    ) -> None:
        shares: Shares[OpenWork] = Shares(DEFAULT_SHARES, weights)
        terms = Terms(["demo"], weights=weights)
        with open_ledger(new_ledger_url(), clock=SetClock()) as ledger:

            def take(most: int) -> None:
                for _ in range(most):
                    expected = shares.take(no_bound)
                    claims = ledger.scheduler.claim("ann", terms, limit=1)
                    if expected is None:
                        assert len(claims) == 0
                        return
                    [claim] = claims
                    assert claim.lane is expected.flow.lane
                    # Several days of a flow may have the same place in it, where that is a time.
                    assert (claim.key.source, claim.key.customer_id) == expected.flow[1:]
                    assert claim.requests == expected.cost or claim.lane in (Lane.RETRY, Lane.REFRESH)

            cost_alike = [
                row for row in first if row.work.lane in (Lane.FRESH, Lane.BACKFILL) or row.cost == 1
            ]
            open_work(ledger, cost_alike)
            add(shares, cost_alike)
            take(between)
            taken = {row.key for row in cost_alike}
            more = [row for row in second if row.key not in taken and row.cost == 1]
            open_work(ledger, more)
            add(shares, more)
            take(len(cost_alike) + len(more) + 1)

    check()


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_a_backfill_of_any_size_never_starves_fresh_work_nor_the_reverse(ledger: Ledger, limit: int) -> None:
    """R-CTL-6: while both have work, each has at least its share of any hundred claims."""
    for number in range(10):
        open_work(ledger, [work_of(key_of(f"c{number}", day), Lane.BACKFILL) for day in range(60)])
        open_work(ledger, [work_of(key_of(f"c{number}", 100 + day), Lane.FRESH) for day in range(40)])
    lanes: list[Lane] = []
    while len(lanes) < 400:
        claims = ledger.scheduler.claim("ann", Terms(["demo"]), limit=limit)
        assert len(claims) == limit, "nobody waits while there is work"
        lanes += [claim.lane for claim in sorted(claims, key=lambda claim: claim.lane)]
    both = DEFAULT_SHARES[Lane.FRESH] + DEFAULT_SHARES[Lane.BACKFILL]
    for start in range(0, 400, 100):
        served = Counter(lanes[start : start + 100])
        for lane in (Lane.FRESH, Lane.BACKFILL):
            assert served[lane] >= 100 * DEFAULT_SHARES[lane] // both - limit, (lane, served)


def test_what_no_other_lane_wants_is_lent(ledger: Ledger) -> None:
    open_work(ledger, [work_of(key_of("a", day), Lane.BACKFILL) for day in range(50)])
    assert len(ledger.scheduler.claim("ann", Terms(["demo"]), limit=40)) == 40


def test_the_order_within_a_flow(ledger: Ledger) -> None:
    """Fresh work newest first, a backfill oldest first, the others by their time."""
    open_work(ledger, [work_of(key_of("a", day), Lane.FRESH) for day in range(9)])
    open_work(ledger, [work_of(key_of("b", day), Lane.BACKFILL) for day in range(9)])
    for lane, descending in ((Lane.FRESH, True), (Lane.BACKFILL, False)):
        terms = Terms(["demo"], lanes=[lane])
        days = [
            claim.key.logical_date for _ in range(9) for claim in ledger.scheduler.claim("x", terms, limit=1)
        ]
        assert days == sorted(days, reverse=descending)
        assert len(days) == 9
    times = [NOW.replace(minute=minute) - (NOW - NOW.replace(hour=5)) for minute in (7, 3, 5)]
    open_work(
        ledger,
        [work_of(key_of("c", day), Lane.RETRY, ready_at=at) for day, at in enumerate(times)],
    )
    claimed = [claim.key for _ in range(3) for claim in ledger.scheduler.claim("x", Terms(["demo"]), limit=1)]
    assert claimed == [key_of("c", day) for day in (1, 2, 0)]
