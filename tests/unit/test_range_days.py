"""R-CTL-10: which days are asked for in one request, and how a range that failed is split."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey
from sealbook.model.ranges import (
    DAY_BY_DAY,
    DaysPerRequest,
    Stretch,
    count_ranges,
    range_around,
    up_to_gap,
)
from sealbook.model.universe import AssetName

SEVEN = (Stretch(0, 7),)
DAYS = st.sets(st.integers(1, 60), min_size=1)
STRETCHES = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 31)), max_size=3, unique_by=lambda each: each[0]
).map(lambda each: tuple(Stretch(*one) for one in sorted(each)))


@pytest.mark.parametrize(
    ("day", "ready", "together"),
    [
        (5, {5}, [5]),
        (5, {4, 5, 6, 8}, [4, 5, 6]),
        (5, {*range(5, 30)}, [*range(5, 12)]),
        (20, {*range(5, 21)}, [*range(14, 21)]),
        (10, {*range(30)}, [*range(4, 11)]),
        (10, {*range(8, 30)}, [*range(8, 15)]),
    ],
)
def test_a_range_is_the_days_before_and_then_those_after_without_a_gap(
    day: int, ready: set[int], together: list[int]
) -> None:
    assert list(range_around(day, ready, SEVEN)) == together


@pytest.mark.parametrize(("tries", "size"), [(0, 31), (1, 15), (2, 7), (3, 3), (4, 1), (5, 1), (99, 1)])
def test_what_has_failed_is_asked_for_in_smaller_ranges(tries: int, size: int) -> None:
    ready = range(1, 100)
    assert len(range_around(40, ready, (Stretch(0, 31),), tries=tries)) == size
    assert count_ranges(ready, (Stretch(0, 31),), tries=tries) == -(-99 // size)


def test_no_range_goes_from_one_stretch_into_the_next() -> None:
    stretches = (Stretch(10, 1), Stretch(20, 4), Stretch(26, 30))
    ready = range(100)
    assert list(range_around(9, ready, stretches)) == [9], "before the first it is day by day"
    assert list(range_around(15, ready, stretches)) == [15]
    assert list(range_around(21, ready, stretches)) == [20, 21, 22, 23]
    assert list(range_around(25, ready, stretches)) == [22, 23, 24, 25]
    assert list(range_around(26, range(20, 28), stretches)) == [26, 27]
    assert count_ranges(range(8, 60), stretches) == 2 + 10 + 2 + 2


@given(ready=DAYS, stretches=STRETCHES, tries=st.integers(0, 5), most=st.integers(1, 40), data=st.data())
def test_a_range_is_consecutive_ready_and_bounded(
    ready: set[int], stretches: tuple[Stretch, ...], tries: int, most: int, data: st.DataObject
) -> None:
    day = data.draw(st.sampled_from(sorted(ready)))
    together = range_around(day, ready, stretches, tries=tries, most=most)
    assert day in together
    assert set(together) <= ready
    holds = [each for each in stretches if each.first <= day]
    size = max(holds[-1].days_per_request >> tries, 1) if holds else 1
    assert len(together) <= min(size, most)
    starts = [each.first for each in stretches if together[0] < each.first <= together[-1]]
    assert starts == [], "it goes into no other stretch"


@given(ready=DAYS, stretches=STRETCHES, tries=st.integers(0, 3))
def test_ranges_that_begin_with_the_first_day_are_as_few_as_can_be(
    ready: set[int], stretches: tuple[Stretch, ...], tries: int
) -> None:
    left, taken = set(ready), 0
    while left:
        left -= {*range_around(min(left), left, stretches, tries=tries)}
        taken += 1
    assert count_ranges(ready, stretches, tries=tries) == taken
    left, others = set(ready), 0
    while left:
        left -= {*range_around(max(left), left, stretches, tries=tries)}
        others += 1
    assert taken <= others


@given(bad=st.integers(0, 365), count=st.integers(1, 366))
def test_one_bad_day_is_alone_after_few_tries_and_its_neighbours_are_good_by_then(
    bad: int, count: int
) -> None:
    """A range fails as a whole; halved at each try, the days around a bad one are good before it is alone."""
    days, stretches = range(1000, 1000 + count), (Stretch(0, count),)
    bad = 1000 + bad % count
    left, tries, requests = {*days}, 0, 0
    while left != {bad} or len(range_around(bad, left, stretches, tries=tries)) > 1 or not tries:
        asked = set(left)
        failed: set[int] = set()
        while asked:
            together = range_around(min(asked), asked, stretches, tries=tries)
            asked -= {*together}
            requests += 1
            if bad in together:
                failed |= {*together}
        left, tries = failed, tries + 1
    assert tries <= count.bit_length(), "halved each time, from all of them down to one"
    assert requests <= 1 + 3 * count.bit_length()


def test_requests_are_counted_by_source_customer_and_query() -> None:
    ranges = DaysPerRequest({AssetName("ads", "clicks"): (Stretch(0, 31),)})
    assert ranges.sources == {"ads"}
    assert DAY_BY_DAY.sources == set()
    keys = [
        PartitionKey(source, customer, query, date(2026, 1, 1) + timedelta(days=day))
        for source, query in (("ads", "clicks"), ("ads", "costs"), ("other", "clicks"))
        for customer in "ab"
        for day in range(40)
    ]
    found = {str(name): requests for name, requests in ranges.requests(keys).items()}
    assert found == {"ads/clicks": 4, "ads/costs": 80, "other/clicks": 80}
    assert DAY_BY_DAY.requests(keys).total() == 240


def test_less_than_one_day_in_a_request_is_refused() -> None:
    with pytest.raises(InvalidInput, match="days_per_request of ads/clicks"):
        DaysPerRequest({AssetName("ads", "clicks"): (Stretch(0, 0),)})


@pytest.mark.parametrize(
    ("days", "kept"), [([], []), ([3], [3]), ([3, 4, 5], [3, 4, 5]), ([3, 4, 6, 7, 9], [3, 4]), ([3, 5], [3])]
)
def test_of_days_with_a_gap_one_request_asks_for_those_before_it(days: list[int], kept: list[int]) -> None:
    keys = [PartitionKey("ads", "a", "clicks", date(2026, 1, day)) for day in days]
    assert [key.logical_date.day for key in up_to_gap(keys)] == kept


def test_days_of_another_customer_do_not_follow() -> None:
    keys = [PartitionKey("ads", who, "clicks", date(2026, 1, day)) for who, day in (("a", 1), ("b", 2))]
    assert up_to_gap(keys) == keys[:1]
