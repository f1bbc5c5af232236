"""R-CTL-6, R-CTL-9, R-CTL-10: lanes get their shares, customers their weights, nothing idles or blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model.shares import DEFAULT_SHARES, SCALE, Claimed, Flow, Shares, order_of, stride
from sealbook.model.work import Lane

PLENTY = 1_000_000


def no_limit(lane: Lane, source: str) -> int:  # noqa: ARG001 - the form of `Room`
    return PLENTY


def nothing(lane: Lane, source: str) -> int:  # noqa: ARG001 - the form of `Room`
    return 0


def take(shares: Shares[int], count: int) -> list[Claimed[int]]:
    taken = [shares.take(no_limit) for _ in range(count)]
    assert None not in taken
    return [each for each in taken if each is not None]


def backlog(shares: Shares[int], lane: Lane, customer_id: str, count: int, cost: int = 1) -> None:
    for number in range(count):
        shares.add(Flow(lane, "ads", customer_id), number, number, cost)


def test_a_customer_with_half_of_all_work_is_bounded_by_its_weight() -> None:
    shares = Shares[int](weights={("ads", "big"): 2})
    backlog(shares, Lane.BACKFILL, "big", 5_000)
    for number in range(100):
        backlog(shares, Lane.BACKFILL, f"c{number}", 50)
    served = Counter(each.flow.customer_id for each in take(shares, 4_080))
    assert served["big"] == pytest.approx(4_080 * 2 / 102, abs=2)
    assert min(served.values()) == 40


def test_a_customer_with_three_days_is_not_delayed_by_one_with_ten_thousand() -> None:
    shares = Shares[int]()
    backlog(shares, Lane.BACKFILL, "big", 10_000)
    take(shares, 1_000)
    backlog(shares, Lane.BACKFILL, "small", 3)
    assert Counter(each.flow.customer_id for each in take(shares, 6))["small"] == 3


def test_cost_counts_and_not_the_number_of_partitions() -> None:
    shares = Shares[int]()
    backlog(shares, Lane.FRESH, "cheap", 1_000, cost=1)
    backlog(shares, Lane.FRESH, "dear", 1_000, cost=4)
    served = Counter(each.flow.customer_id for each in take(shares, 500))
    assert (served["cheap"], served["dear"]) == (400, 100)


def test_each_lane_gets_its_share_while_all_have_work() -> None:
    shares = Shares[int]()
    for lane in Lane:
        backlog(shares, lane, "c", 1_000)
    served = Counter(each.flow.lane for each in take(shares, 1_000))
    assert {lane: served[lane] for lane in Lane} == pytest.approx(
        {k: 10 * v for k, v in DEFAULT_SHARES.items()}, abs=2
    )


def test_a_lane_alone_borrows_all_and_owes_nothing_afterwards() -> None:
    shares = Shares[int]()
    backlog(shares, Lane.BACKFILL, "c", 2_000)
    assert {each.flow.lane for each in take(shares, 1_000)} == {Lane.BACKFILL}
    backlog(shares, Lane.FRESH, "c", 1_000)
    both = DEFAULT_SHARES[Lane.BACKFILL] + DEFAULT_SHARES[Lane.FRESH]
    served = Counter(each.flow.lane for each in take(shares, 10 * both))
    assert served[Lane.BACKFILL] == pytest.approx(10 * DEFAULT_SHARES[Lane.BACKFILL], abs=2)


def test_a_flow_that_returns_has_no_arrears() -> None:
    shares = Shares[int]()
    backlog(shares, Lane.FRESH, "away", 1)
    backlog(shares, Lane.FRESH, "there", 5_000)
    take(shares, 2_000)
    backlog(shares, Lane.FRESH, "away", 1_000)
    served = Counter(each.flow.customer_id for each in take(shares, 100))
    assert served["away"] == pytest.approx(50, abs=1)


def test_a_paused_customer_or_source_waits_and_nobody_else_does() -> None:
    shares = Shares[int]()
    backlog(shares, Lane.FRESH, "a", 2)
    backlog(shares, Lane.FRESH, "b", 1)
    shares.add(Flow(Lane.FRESH, "other", "c"), 0, 0)
    shares.pause("ads", "a")
    assert [each.flow.customer_id for each in take(shares, 1)] == ["b"]
    shares.pause("ads")
    assert [each.flow.customer_id for each in take(shares, 1)] == ["c"]
    shares.resume("ads", "a")
    assert shares.take(no_limit) is None
    shares.resume("ads")
    assert [each.flow.customer_id for each in take(shares, 2)] == ["a", "a"]


def test_what_asks_no_source_is_served_where_its_budget_is_used_up() -> None:
    shares = Shares[int]()
    shares.add(Flow(Lane.FRESH, "ads", "a"), 0, 1, cost=1)
    shares.add(Flow(Lane.FRESH, "ads", "a"), 1, 2, cost=0)
    shares.add(Flow(Lane.FRESH, "ads", "b"), 0, 3, cost=1)
    claimed = shares.take(nothing)
    assert claimed is not None
    assert claimed.items == (2,)
    assert shares.take(nothing) is None
    assert [each.items for each in take(shares, 2)] == [(3,), (1,)]  # a was served already


def test_a_source_without_budget_does_not_hold_up_another() -> None:
    shares = Shares[int]()
    shares.add(Flow(Lane.FRESH, "ads", "a"), 0, 1)
    shares.add(Flow(Lane.BACKFILL, "other", "a"), 0, 2)
    claimed = shares.take(lambda _, source: 1 if source == "other" else 0)
    assert claimed is not None
    assert claimed.items == (2,)


def test_the_order_within_a_flow() -> None:
    early, late = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
    old, new = date(2026, 1, 1), date(2026, 1, 2)
    assert order_of(Lane.FRESH, new, late) < order_of(Lane.FRESH, old, early)
    assert order_of(Lane.BACKFILL, old, late) < order_of(Lane.BACKFILL, new, early)
    for lane in (Lane.RETRY, Lane.REFRESH):
        assert order_of(lane, new, early) < order_of(lane, old, late)


@pytest.mark.parametrize("shares", [{Lane.FRESH: 1}, {**DEFAULT_SHARES, Lane.RETRY: 0}])
def test_a_lane_without_a_share_is_refused(shares: Mapping[Lane, int]) -> None:
    with pytest.raises(InvalidInput, match="shares"):
        Shares[int](shares)


class Plain:
    """The same rules, in the fewest words and as slow as may be."""

    def __init__(self, weights: Mapping[tuple[str, str], int]) -> None:
        self.weights = weights
        self.work: list[tuple[Flow, int, int, int]] = []
        self.passes: dict[object, int] = {}
        self.clocks: dict[object, int] = {}
        self.paused: set[tuple[str, str]] = set()

    def take(self, rooms: Mapping[tuple[Lane, str], int]) -> tuple[Flow, int] | None:
        for lane in sorted(Lane, key=lambda lane: self.passes.get(lane, 0)):
            heads = [
                head for flow in {each[0] for each in self.work} if (head := self.head(flow, lane, rooms))
            ]
            if heads:
                flow, order, item, cost = min(heads, key=lambda head: (self.passes.get(head[0], 0), *head[0]))
                self.work.remove((flow, order, item, cost))
                self.charge(flow, lane, stride(cost, self.weights.get(flow[1:], 1)))
                self.charge(lane, None, stride(cost, DEFAULT_SHARES[lane]))
                return flow, item
        return None

    def head(
        self, flow: Flow, lane: Lane, rooms: Mapping[tuple[Lane, str], int]
    ) -> tuple[Flow, int, int, int] | None:
        """Return what a flow gives next: its first, or its first free one where others cost too much."""
        if flow.lane is not lane or flow[1:] in self.paused:
            return None
        room = rooms[flow[:2]]
        lowest = min(
            (each[0] for each in self.work if each[0][:2] == flow[:2] and each[0][1:] not in self.paused),
            key=lambda other: (self.passes.get(other, 0), *other),
        )
        first = min((each for each in self.work if each[0] == lowest), key=lambda each: each[1:3])
        gated = first[3] > room
        mine = [each for each in self.work if each[0] == flow and not (gated and each[3])]
        return min(mine, key=lambda each: each[1:3], default=None)

    def charge(self, who: object, among: object, by: int) -> None:
        clock = self.clocks[among] = max(self.clocks.get(among, 0), self.passes.get(who, 0))
        self.passes[who] = clock + by


FLOWS = st.builds(Flow, st.sampled_from(Lane), st.sampled_from(["ads", "other"]), st.sampled_from("abc"))
ROOMS = st.fixed_dictionaries(
    {(lane, source): st.integers(0, 3) for lane in Lane for source in ("ads", "other")}
)
STEPS = st.lists(
    st.tuples(st.just("add"), FLOWS, st.integers(0, 3), st.integers(0, 3))
    | st.tuples(st.just("take"), ROOMS)
    | st.tuples(
        st.sampled_from(["pause", "resume"]), st.sampled_from(["ads", "other"]), st.sampled_from("abc")
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_the_engine_serves_as_the_plain_rules_say(steps: list[tuple[object, ...]]) -> None:
    weights = {("ads", "a"): 3, ("other", "b"): 2}
    shares, plain = Shares[int](weights=weights), Plain(weights)
    for number, step in enumerate(steps):
        match step:
            case ("add", Flow() as flow, int() as order, int() as cost):
                shares.add(flow, order, number, cost)
                plain.work.append((flow, order, number, cost))
            case ("take", dict() as rooms):
                claimed = shares.take(lambda lane, source, rooms=rooms: rooms[lane, source])  # type: ignore[misc]
                assert (claimed and (claimed.flow, *claimed.items)) == plain.take(rooms)
            case ("pause", str() as source, str() as customer_id):
                shares.pause(source, customer_id)
                plain.paused.add((source, customer_id))
            case (_, str() as source, str() as customer_id):
                shares.resume(source, customer_id)
                plain.paused.discard((source, customer_id))


@given(random=st.randoms(use_true_random=False), busy=st.sampled_from(Lane))
def test_a_lane_that_always_has_work_gets_its_share_of_the_cost(random: Random, busy: Lane) -> None:
    """Whatever the other lanes do meanwhile, to within one piece of work of each."""
    shares = Shares[int]()
    dearest = 5
    for number in range(300):
        shares.add(Flow(busy, "ads", str(number % 3)), number, number, number % dearest + 1)
    spent: Counter[Lane] = Counter()
    for number in range(150):
        if random.random() < 0.7:
            flow = Flow(random.choice(list(Lane)), "ads", str(number % 2))
            shares.add(flow, number, number, random.randint(1, dearest))
        claimed = shares.take(no_limit)
        assert claimed is not None
        spent[claimed.flow.lane] += claimed.cost
    promised = spent.total() * DEFAULT_SHARES[busy] / sum(DEFAULT_SHARES.values())
    assert spent[busy] >= promised - dearest * len(Lane)


def test_passes_are_whole_numbers() -> None:
    assert stride(1, 1) == SCALE
    assert stride(0, 1) == SCALE
    assert stride(3, 7) == 3 * SCALE // 7
