"""R-CTL-10: a source's budget is never overspent in any 24 hours, and each lane has its share of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model.budget import BUCKET, WINDOW, Budget
from sealbook.model.work import Lane

HOUR = 3_600
EQUAL = dict.fromkeys(Lane, 1)


def spend(budget: Budget, lane: Lane, requests: int, at: int) -> None:
    assert budget.room(lane, at) >= requests
    budget.reserve(lane, requests)
    budget.settle(lane, requests, requests, at)


def test_a_lane_has_its_share_and_no_more_while_others_may_need_theirs() -> None:
    budget = Budget(400, EQUAL)
    assert [budget.room(lane, 0) for lane in Lane] == [100, 100, 100, 100]
    spend(budget, Lane.BACKFILL, 100, 0)
    assert budget.room(Lane.BACKFILL, 0) == 0
    assert budget.room(Lane.FRESH, 0) == 100


def test_a_lane_borrows_what_others_will_not_ask_for() -> None:
    budget = Budget(400, EQUAL)
    budget.expect(Lane.FRESH, 30)
    budget.expect(Lane.RETRY, 0)
    # All but what is expected of fresh work, a fifth of the share of retries, and the share of refreshes.
    assert budget.room(Lane.BACKFILL, 0) == 400 - 30 - 20 - 100
    spend(budget, Lane.BACKFILL, 250, 0)
    assert [budget.room(lane, 0) for lane in Lane] == [30, 20, 100, 0]
    spend(budget, Lane.FRESH, 30, 0)
    assert budget.room(Lane.FRESH, 0) == 0


def test_what_a_lane_has_asked_for_is_not_kept_for_it_once_more() -> None:
    budget = Budget(400, EQUAL)
    budget.expect(Lane.FRESH, 30)
    spend(budget, Lane.FRESH, 20, 0)
    assert budget.room(Lane.BACKFILL, 0) == 400 - 20 - 10 - 100 - 100


def test_where_too_much_was_lent_fresh_work_has_what_is_left() -> None:
    budget = Budget(400, EQUAL)
    for lane in Lane:
        budget.expect(lane, 0)
    spend(budget, Lane.BACKFILL, 340, 0)
    for lane in Lane:
        budget.expect(lane, 50)
    assert [budget.room(lane, 0) for lane in Lane] == [50, 10, 0, 0]


def test_more_is_never_expected_of_a_lane_than_its_share() -> None:
    budget = Budget(400, EQUAL)
    budget.expect(Lane.FRESH, 1_000)
    assert budget.room(Lane.BACKFILL, 0) == 100


def test_what_was_spent_counts_until_its_whole_bucket_has_left_the_window() -> None:
    budget = Budget(4, EQUAL)
    spend(budget, Lane.FRESH, 1, 7)
    assert budget.room(Lane.FRESH, WINDOW + BUCKET - 1) == 0
    assert budget.opens_at() == WINDOW + BUCKET
    assert budget.room(Lane.FRESH, WINDOW + BUCKET) == 1
    assert budget.opens_at() is None


def test_what_is_reserved_counts_until_it_is_settled() -> None:
    budget = Budget(4, EQUAL)
    budget.reserve(Lane.FRESH, 1)
    assert budget.room(Lane.FRESH, 10 * WINDOW) == 0
    budget.settle(Lane.FRESH, 1, 0, 10 * WINDOW)
    assert budget.room(Lane.FRESH, 10 * WINDOW) == 1


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(InvalidInput, match="requests_per_day"):
        Budget(-1)


@given(
    limit=st.integers(0, 40),
    work=st.lists(
        st.tuples(
            st.sampled_from(Lane),
            st.integers(1, 3),  # requests
            st.integers(0, 9 * HOUR),  # until the next claim
            st.integers(0, 30 * HOUR),  # from claim to finish
            st.floats(0, 1),  # when within that the requests are sent
            st.sampled_from(["spent", "given back"]),
        ),
        max_size=80,
    ),
)
def test_no_24_hours_have_more_requests_than_the_limit(
    limit: int, work: list[tuple[Lane, int, int, int, float, str]]
) -> None:
    budget = Budget(limit, EQUAL)
    budget.expect(Lane.REFRESH, 0)
    now = 0
    open_work: list[tuple[int, Lane, int, int]] = []
    sent: list[tuple[float, int]] = []
    for lane, requests, pause, takes, part, ending in work:
        now += pause
        for finished in sorted(each for each in open_work if each[0] <= now):
            open_work.remove(finished)
            budget.settle(finished[1], finished[2], finished[3], finished[0])
        if budget.room(lane, now) >= requests:
            budget.reserve(lane, requests)
            spent = requests if ending == "spent" else 0
            open_work.append((now + takes, lane, requests, spent))
            sent.append((now + part * takes, spent))
    for start, _ in sent:
        assert sum(spent for at, spent in sent if start <= at < start + WINDOW) <= limit


@given(st.lists(st.sampled_from(Lane), max_size=60), st.lists(st.sampled_from(Lane), max_size=60))
def test_a_lane_gets_its_share_whatever_others_borrowed(first: list[Lane], then: list[Lane]) -> None:
    budget = Budget(40, EQUAL)
    budget.expect(Lane.FRESH, 10)
    budget.expect(Lane.BACKFILL, 3)
    for lane in first + then:
        if lane is not Lane.FRESH and budget.room(lane, 0) >= 1:
            spend(budget, lane, 1, 0)
    assert budget.room(Lane.FRESH, 0) >= 10
