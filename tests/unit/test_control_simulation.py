"""R-CTL-2, R-CTL-5, R-CTL-6, R-CTL-10 on a virtual clock: what a policy comes to, before it is in force."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sealbook.control.forecast import Promise, busiest, by_day
from sealbook.control.scenario import Materialized, Missing, Opened, Rates, Scenario, Series
from sealbook.control.simulation import simulate
from sealbook.errors import InvalidInput
from sealbook.model.ranges import DaysPerRequest, Stretch
from sealbook.model.retry import Jitter, Retries, RetryPolicies, Stop
from sealbook.model.universe import AssetName
from sealbook.model.work import Lane

START = datetime(2026, 3, 1, tzinfo=UTC)
TODAY = START.toordinal()
ASSET = AssetName("ads", "clicks")
POINTS = (timedelta(hours=6), timedelta(days=3))


def series(customer_id: str, first: int, last: int) -> Series:
    """Return the days of a customer, counted from the first day that is not over."""
    return Series("ads", customer_id, "clicks", TODAY + first, TODAY + last)


def missing(index: int, first: int, last: int) -> Missing:
    return Missing(index, TODAY + first, TODAY + last)


ONE = Scenario(START, (series("a", 0, 0),), due={ASSET: POINTS}, seconds=10)
MANY = Scenario(
    START,
    tuple(series(f"c{number}", -60, 9) for number in range(20)),
    due={ASSET: POINTS},
    missing=tuple(missing(number, -60, -2) for number in range(20)),
    rates={ASSET: Rates(transient=0.05, permanent=0.01, rejected=0.02)},
    requests_per_day={"ads": 200},
    at_once=4,
)


def test_a_day_is_fetched_at_each_of_its_due_points_and_then_never_again() -> None:
    forecast = simulate(ONE)
    lanes = {lane: each.attempts for lane, each in forecast.lanes.items() if each.attempts}
    assert lanes == {Lane.FRESH: 1, Lane.REFRESH: 1}
    assert forecast.ended_at == START + timedelta(days=4, seconds=10)
    assert (forecast.good, forecast.unfinished, forecast.requests) == (1, 0, 2)
    assert forecast.good_by_day == {1: 1}


def test_a_day_ends_in_the_time_zone_of_its_account() -> None:
    [plain] = ONE.series
    zone = ZoneInfo("America/Los_Angeles")
    forecast = simulate(replace(ONE, series=(plain._replace(zone=zone),)))
    assert forecast.ended_at == START + timedelta(days=4, hours=8, seconds=10)


def test_a_simulation_of_some_days_ends_with_them() -> None:
    forecast = simulate(ONE, days=2)
    assert {lane: each.attempts for lane, each in forecast.lanes.items() if each.attempts} == {Lane.FRESH: 1}
    assert simulate(ONE, days=1).requests == 0


def test_what_is_good_already_is_only_refreshed() -> None:
    good = Materialized(0, TODAY - 2, START - timedelta(hours=10))
    forecast = simulate(replace(ONE, series=(series("a", -2, -2),), good=(good,)))
    assert {lane: each.attempts for lane, each in forecast.lanes.items() if each.attempts} == {
        Lane.REFRESH: 1
    }
    assert forecast.good == 1


def opened(day: int, lane: Lane = Lane.RETRY, hours: float | None = 5, **more: Any) -> Scenario:
    """Return a scenario of one day that work is open of, which is ready after some hours."""
    ready_at = None if hours is None else START + timedelta(hours=hours)
    work = Opened(0, TODAY + day, lane, ready_at, **more)
    return replace(ONE, series=(series("a", day, day),), due={}, opened=(work,))


def test_what_failed_before_is_tried_when_its_time_has_come_and_not_as_if_it_were_missing() -> None:
    """R-CTL-2: with its failures so far, though the simulation has seen none of them."""
    scenario = opened(-30, tries=2)
    forecast = simulate(scenario)
    assert {lane: each.attempts for lane, each in forecast.lanes.items() if each.attempts} == {Lane.RETRY: 1}
    assert forecast.ended_at == START + timedelta(hours=5, seconds=10)
    assert (forecast.good, forecast.early, forecast.unfinished) == (1, 0, 0)

    policy = RetryPolicies(Retries(max_attempts=3, jitter=Jitter.NONE))
    failing = replace(scenario, rates={ASSET: Rates(transient=1.0)}, retries=policy)
    forecast = simulate(failing)
    assert (forecast.lanes[Lane.RETRY].attempts, forecast.terminal) == (1, 1), "the third failure is the last"


@pytest.mark.parametrize(
    ("stop", "is_good", "ending"),
    [
        (Stop.MAX_ATTEMPTS, False, {"terminal": 1}),
        (Stop.MANUAL, False, {"terminal": 1}),
        (Stop.PERMANENT, False, {"parked": 1}),
        (None, False, {"unfinished": 1}),
        (Stop.PERMANENT, True, {"good": 1}),
        (Stop.MAX_ATTEMPTS, True, {"good": 1}),
    ],
)
def test_what_has_stopped_or_is_paused_is_not_tried(
    stop: Stop | None, is_good: bool, ending: dict[str, int]
) -> None:
    forecast = simulate(opened(-30, hours=None, stop=stop, is_good=is_good))
    assert forecast.requests == 0
    found = {name: getattr(forecast, name) for name in ("good", "terminal", "parked", "unfinished")}
    assert {name: count for name, count in found.items() if count} == ending


def test_a_refresh_that_was_given_up_is_due_again_at_the_next_point() -> None:
    scenario = replace(
        opened(-2, Lane.REFRESH, None, stop=Stop.MAX_ATTEMPTS, is_good=True), due={ASSET: POINTS}
    )
    forecast = simulate(scenario)
    assert (forecast.lanes[Lane.REFRESH].attempts, forecast.good) == (1, 1)
    assert forecast.ended_at == START + timedelta(days=2, seconds=10)


def test_missing_days_are_fresh_for_a_while_and_backfill_after_that() -> None:
    scenario = replace(ONE, series=(series("a", -10, -1),), missing=(missing(0, -10, -2),))
    forecast = simulate(scenario)
    assert forecast.lanes[Lane.BACKFILL].attempts == 6
    assert forecast.lanes[Lane.FRESH].attempts == 4  # three, and the day that is due at six
    assert forecast.good == 10


@pytest.mark.parametrize(
    ("rates", "ending"),
    [
        (Rates(transient=1), {"terminal": 1}),
        (Rates(rejected=1), {"terminal": 1}),
        (Rates(permanent=1), {"parked": 1}),
    ],
)
def test_what_always_fails_is_given_up_or_parked(rates: Rates, ending: dict[str, int]) -> None:
    policies = RetryPolicies(Retries(jitter=Jitter.NONE, max_attempts=4))
    forecast = simulate(replace(ONE, rates={ASSET: rates}, retries=policies))
    counts = {"good": forecast.good, "terminal": forecast.terminal, "parked": forecast.parked}
    assert {name: count for name, count in counts.items() if count} == ending
    assert forecast.requests == (1 if "parked" in ending else 4)
    if "terminal" in ending:  # six hours after the day, then 5 minutes, 30 minutes, 2 hours, each 10 s long
        waits = timedelta(minutes=5 + 30 + 120, seconds=40)
        assert forecast.ended_at == START + timedelta(days=1, hours=6) + waits


def test_everything_ends_good_terminal_or_parked_within_budget_and_in_time() -> None:
    forecast = simulate(MANY)
    assert forecast.good + forecast.terminal + forecast.parked == 20 * 70
    assert forecast.unfinished == forecast.early == forecast.twice_at_once == 0
    assert forecast.parked > 0
    assert forecast.busiest_day["ads"] <= 200
    assert forecast.fresh_late <= MANY.seconds
    assert forecast.backfill_done_at is not None


def test_the_same_seed_has_the_same_luck_and_another_has_another() -> None:
    assert simulate(MANY) == simulate(MANY)
    assert simulate(MANY) != simulate(replace(MANY, seed=1))


def test_fresh_work_waits_beside_a_backfill_no_longer_than_its_share_makes_it() -> None:
    recent = tuple(missing(number, -4, -2) for number in range(20))
    alone = simulate(replace(MANY, missing=recent, rates={})).lanes[Lane.FRESH]
    beside = simulate(replace(MANY, rates={})).lanes[Lane.FRESH]
    assert beside.attempts == alone.attempts
    share = MANY.shares[Lane.FRESH] / sum(MANY.shares.values())
    assert beside.longest_wait <= alone.longest_wait / share + MANY.seconds


def test_the_days_of_a_forecast_add_up() -> None:
    forecast = simulate(MANY)
    days = list(by_day(forecast))
    assert sum(good for _, good, _ in days) == forecast.good
    assert sum(sum(requests.values()) for _, _, requests in days) == forecast.requests
    assert [day for day, _, _ in days] == list(range(len(days)))


def test_without_a_budget_as_much_is_done_as_workers_can() -> None:
    forecast = simulate(replace(MANY, requests_per_day={}, rates={}))
    assert forecast.busiest_day["ads"] > 200


WEEK = DaysPerRequest({ASSET: (Stretch(0, 7),)})


def test_days_that_are_ready_together_cost_one_request() -> None:
    scenario = replace(ONE, series=(series("a", -30, -1),), missing=(missing(0, -30, -2),))
    day_by_day, ranged = simulate(scenario), simulate(replace(scenario, ranges=WEEK))
    counts = {
        lane: (each.attempts, ranged.requests_by_day[lane].total()) for lane, each in ranged.lanes.items()
    }
    # History in four ranges; three days are fresh, one is due at six; three are due again, one by one.
    assert counts == {Lane.FRESH: (4, 2), Lane.BACKFILL: (26, 4), Lane.REFRESH: (3, 3), Lane.RETRY: (0, 0)}
    assert {lane: each.attempts for lane, each in day_by_day.lanes.items()} == {
        lane: attempts for lane, (attempts, _) in counts.items()
    }
    assert (ranged.good, ranged.unfinished, ranged.early, ranged.twice_at_once) == (30, 0, 0, 0)


def test_a_range_that_fails_is_tried_in_halves_until_days_fail_alone() -> None:
    """And what fails for good is parked only then: nobody knew which day it was."""
    week = replace(ONE, series=(series("a", -20, -14),), missing=(missing(0, -20, -14),), ranges=WEEK)
    for rates, ending in ((Rates(permanent=1), "parked"), (Rates(transient=1), "terminal")):
        policies = RetryPolicies(Retries(max_attempts=3))
        forecast = simulate(replace(week, rates={ASSET: rates}, retries=policies))
        assert getattr(forecast, ending) == 7
        # Seven days at once, then three, three and one, then each alone; what is parked is not tried again.
        assert forecast.requests == 1 + 3 + (6 if ending == "parked" else 7)


def test_a_due_point_that_is_overtaken_by_the_next_is_missed() -> None:
    scenario = replace(ONE, requests_per_day={"ads": 1})
    one = simulate(scenario)
    assert (one.missed_points, one.requests) == (0, 2)
    many = simulate(replace(scenario, series=tuple(series(f"c{number}", 0, 0) for number in range(9))))
    assert many.missed_points > 0
    assert many.requests + many.missed_points == 18, "each due point is fetched for, or missed"


@pytest.mark.parametrize(
    ("sent", "most"), [({}, 0), ({0: 2, 1439: 3}, 5), ({0: 2, 1440: 3}, 3), ({0: 2, 1: 1, 1440: 3}, 4)]
)
def test_the_busiest_day_is_that_of_any_24_hours(sent: dict[int, int], most: int) -> None:
    assert busiest(Counter(sent)) == most


def test_a_promise_is_kept_if_the_nth_is_begun_before_a_lane_of_its_own_had_done_with_it() -> None:
    promise = Promise(seconds_each=10)
    for _ in range(3):
        promise.arrive(100)
    promise.begin(105)
    promise.begin(120)
    assert promise.latest == 0
    promise.begin(137)
    assert promise.latest == 7


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Rates(transient=1.5), "transient"),
        (lambda: Rates(transient=0.6, rejected=0.6), "rates"),
        (lambda: replace(ONE, at_once=0), "at_once"),
        (lambda: replace(ONE, seconds=0), "seconds"),
    ],
)
def test_what_cannot_be_simulated_is_refused(make: object, field: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidInput) as raised:
        make()
    assert raised.value.field == field
