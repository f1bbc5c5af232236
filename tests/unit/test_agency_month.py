"""R-CTL-10: a month of an agency fits into Basic access by ranges, and not day by day.

It has a twentieth of the accounts, and of the budget; `bench control` has all of them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sealbook.control.forecast import Forecast
from sealbook.control.scenario import Scenario
from sealbook.control.simulation import simulate
from sealbook.model.work import Lane
from tests.support.agency import MONTH, POINTS, agency_month

ACCOUNTS = 50


def checked(scenario: Scenario) -> Forecast:
    """Simulate to the end: every day is good and fetched after its last due point, within the budget."""
    forecast = simulate(scenario)
    days = sum(series.last - series.first + 1 for series in scenario.series)
    assert forecast.good == days
    assert (forecast.terminal, forecast.parked, forecast.unfinished) == (0, 0, 0)
    assert (forecast.early, forecast.twice_at_once) == (0, 0)
    assert forecast.busiest_day["google_ads"] <= scenario.requests_per_day["google_ads"]
    return forecast


def due_points(scenario: Scenario) -> int:
    """Return how many due points there are in a month."""
    return len(scenario.series) * MONTH * len(POINTS)


def test_a_month_of_an_agency_fits_into_its_budget_by_ranges() -> None:
    """Where there is not enough for a request a day, days wait for the next one, and go with it."""
    whole = checked(replace(agency_month(ACCOUNTS), rates={}))
    assert whole.missed_points == 0
    assert whole.lanes[Lane.FRESH].longest_wait < 3_600
    assert whole.lanes[Lane.REFRESH].longest_wait < 2 * 86_400

    scenario = agency_month(ACCOUNTS)
    faulty = checked(scenario)
    assert faulty.lanes[Lane.RETRY].attempts > 0
    # What fails after it has waited for a day, and waits again, may meet its next point: few do.
    assert faulty.missed_points < due_points(scenario) / 2_000


def test_day_by_day_it_does_not() -> None:
    scenario = replace(agency_month(ACCOUNTS, ranges=False), rates={})
    forecast = checked(scenario)
    assert forecast.missed_points > due_points(scenario) / 5
    assert forecast.lanes[Lane.REFRESH].longest_wait > 7 * 86_400


def test_a_month_that_is_restated_every_day_costs_two_requests_a_day_and_query() -> None:
    """Thirty days that are due at once are one range: 155,000 days of 1,000 accounts by 10,000 requests."""
    daily = (timedelta(hours=6), *(timedelta(days=day) for day in range(1, MONTH + 1)))
    forecast = checked(agency_month(ACCOUNTS // 5, points=daily))
    assert forecast.missed_points == 0
    assert forecast.lanes[Lane.REFRESH].longest_wait < 3_600
    assert forecast.lanes[Lane.REFRESH].attempts > 20 * forecast.requests_by_day[Lane.REFRESH].total()
