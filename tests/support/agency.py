"""A month of an agency: many accounts, whose days are restated, within the budget of one Cloud project."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sealbook.control.scenario import Materialized, Rates, Scenario, Series
from sealbook.model.ranges import DAY_BY_DAY, DaysPerRequest, Stretch
from sealbook.model.universe import AssetName

ACCOUNTS, QUERIES, MONTH = 1_000, 5, 30
BASIC_ACCESS = 15_000
"""Operations in any 24 hours; one request is one, however many days it is for."""
DAYS_PER_REQUEST = 31
START = datetime(2026, 3, 1, tzinfo=UTC)
POINTS = (timedelta(hours=6), timedelta(days=3), timedelta(days=7), timedelta(days=30))
FAULTS = Rates(transient=0.02, rejected=0.002)
_ASSETS = [AssetName("google_ads", f"query_{number}") for number in range(QUERIES)]


def agency_month(
    accounts: int = ACCOUNTS, *, ranges: bool = True, points: tuple[timedelta, ...] = POINTS
) -> Scenario:
    """Return a month in which as many days come and are restated as in every other; the budget is to scale.

    What was due before it is good. With `ranges` a request takes a month of days, else it takes one.
    """
    today = START.toordinal()
    series = tuple(
        Series("google_ads", f"{number:010}", asset.query_name, today - MONTH - 2, today + MONTH - 1)
        for number in range(accounts)
        for asset in _ASSETS
    )
    good = tuple(
        Materialized(index, day, last)
        for day in range(today - MONTH - 2, today - 1)
        if (last := _last_point(day, points)) is not None
        for index in range(len(series))
    )
    days = {name: (Stretch(0, DAYS_PER_REQUEST),) for name in _ASSETS}
    return Scenario(
        START,
        series,
        due=dict.fromkeys(_ASSETS, points),
        good=good,
        rates=dict.fromkeys(_ASSETS, FAULTS),
        requests_per_day={"google_ads": BASIC_ACCESS * accounts // ACCOUNTS},
        ranges=DaysPerRequest(days) if ranges else DAY_BY_DAY,
    )


def _last_point(day: int, points: tuple[timedelta, ...]) -> datetime | None:
    """Return the last due point of a day before the month begins."""
    end = datetime.fromordinal(day + 1).replace(tzinfo=UTC)
    return max((end + point for point in points if end + point < START), default=None)
