"""The control plane: a year and an agency's month on a virtual clock; claims, plans beside bare SQL, Dagster.

CONTROL_CUSTOMERS says how many customers, of five queries and 400 days each.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

from bench import control_load
from bench.harness import Result, seconds_of
from bench.scale import sized
from sealbook.control.forecast import Forecast, LaneForecast
from sealbook.control.scenario import Missing, Rates, Scenario, Series
from sealbook.control.simulation import simulate
from sealbook.model.universe import AssetName
from sealbook.model.work import Lane
from tests.support.agency import ACCOUNTS, BASIC_ACCESS, MONTH, POINTS, agency_month

CUSTOMERS = int(os.environ.get("CONTROL_CUSTOMERS", sized(small="200", full="1000")))
QUERIES = 5
BACKLOG, COMING = 360, 40
"""Days that are over when the simulation begins, and days that end in the course of it."""
START = datetime(2026, 1, 1, tzinfo=UTC)
REQUESTS_PER_DAY = 60 * CUSTOMERS
"""Fresh days ask for 5 of each customer, and their restatements for 15: the rest is for the backfill."""


def scenario() -> Scenario:
    """Return a book of many customers with a year to fetch, and days that come and are restated meanwhile."""
    today = START.toordinal()
    assets = [AssetName("ads", f"query_{number}") for number in range(QUERIES)]
    series = tuple(
        Series("ads", f"c{customer}", asset.query_name, today - BACKLOG, today + COMING - 1)
        for customer in range(CUSTOMERS)
        for asset in assets
    )
    points = (timedelta(hours=6), timedelta(days=3), timedelta(days=7), timedelta(days=30))
    return Scenario(
        START,
        series,
        due=dict.fromkeys(assets, points),
        missing=tuple(Missing(index, today - BACKLOG, today - 2) for index in range(len(series))),
        rates=dict.fromkeys(assets, Rates(transient=0.02, permanent=0.001)),
        requests_per_day={"ads": REQUESTS_PER_DAY},
    )


def run() -> list[Result]:
    """Measure the simulations, and the ledger's side on both databases."""
    return [*simulated(), *agency(), *control_load.run()]


def simulated() -> list[Result]:
    """Simulate to completion, and hold what came of it against the rules."""
    book = scenario()
    found: list[Forecast] = []
    began = time.process_time()
    wall = seconds_of(lambda: found.append(simulate(book)))
    seconds = time.process_time() - began
    [forecast] = found
    partitions = len(book.series) * (BACKLOG + COMING)
    ended = forecast.good + forecast.terminal + forecast.parked
    days = (forecast.ended_at - START).days
    done_at = forecast.backfill_done_at
    backfill = partitions - CUSTOMERS * QUERIES * (COMING + 4)  # three days are fresh still, one is not due
    attempts = forecast.lanes[Lane.BACKFILL].attempts
    return [
        Result(
            f"simulate {partitions:,} partitions",
            seconds,
            "s of CPU",
            "< 120",
            seconds < 120,
            f"{forecast.requests:,} attempts over {days} days; {wall:.0f} s on the clock",
        ),
        Result(
            "partitions that ended good, terminal or parked",
            ended / partitions,
            "of all",
            "= 1",
            ended == partitions and forecast.unfinished == 0,
            f"{forecast.good:,} good, {forecast.terminal:,} terminal, {forecast.parked:,} parked",
        ),
        Result(
            "fresh work begun later than its share promises",
            forecast.fresh_late,
            "s",
            f"<= {book.seconds}",
            forecast.fresh_late <= book.seconds,
            ", ".join(f"{lane} waits {each.mean_wait:,.0f} s on average" for lane, each in _waits(forecast)),
        ),
        Result(
            "backfill done",
            attempts / backfill,
            "of all",
            "= 1",
            attempts == backfill and done_at is not None,
            f"by {done_at:%Y-%m-%d}, {attempts:,} days" if done_at else "never",
        ),
        _none("partitions attempted early", forecast.early),
        _none("partitions attempted twice at once", forecast.twice_at_once),
        Result(
            "requests in the busiest 24 hours",
            forecast.busiest_day["ads"] / REQUESTS_PER_DAY,
            "of the budget",
            "<= 1",
            forecast.busiest_day["ads"] <= REQUESTS_PER_DAY,
            f"{forecast.busiest_day['ads']:,} of {REQUESTS_PER_DAY:,}",
        ),
    ]


def agency() -> list[Result]:
    """Simulate a month of an agency with faults, by ranges and day by day, within Basic access."""
    found: dict[bool, Forecast] = {}
    spent = {}
    for ranges in (True, False):
        book = agency_month(ranges=ranges)
        began = time.process_time()
        found[ranges] = simulate(book)
        spent[ranges] = time.process_time() - began
    ranged, by_day = found[True], found[False]
    points = len(book.series) * MONTH * len(POINTS)
    days = sum(series.last - series.first + 1 for series in book.series)
    refresh = ranged.lanes[Lane.REFRESH]
    return [
        Result(
            f"simulate a month of {ACCOUNTS:,} accounts by ranges",
            spent[True],
            "s of CPU",
            "< 60",
            spent[True] < 60,
            f"{sum(each.attempts for each in ranged.lanes.values()):,} days by {ranged.requests:,} requests",
        ),
        Result(
            "its requests in the busiest 24 hours",
            ranged.busiest_day["google_ads"] / BASIC_ACCESS,
            "of Basic access",
            "<= 1",
            ranged.busiest_day["google_ads"] <= BASIC_ACCESS,
            f"{ranged.busiest_day['google_ads']:,} of {BASIC_ACCESS:,}",
        ),
        Result(
            "its days that ended good, fetched after their last due point",
            ranged.good / days,
            "of all",
            "= 1",
            ranged.good == days and ranged.unfinished == 0,
            f"{ranged.good:,} days; refreshes wait {refresh.mean_wait / 3600:.0f} h on average",
        ),
        Result(
            "its due points that the next one overtook",
            ranged.missed_points / points,
            "of all",
            "< 0.0005",
            ranged.missed_points < points / 2_000,
            f"{ranged.missed_points:,} of {points:,}, after failures; day by day {by_day.missed_points:,}",
        ),
        Result(
            "due points that the next one overtakes day by day",
            by_day.missed_points / points,
            "of all",
            "> 0.1",
            by_day.missed_points > points / 10,
            f"refreshes wait {by_day.lanes[Lane.REFRESH].mean_wait / 86_400:.1f} days on average",
        ),
    ]


def _waits(forecast: Forecast) -> list[tuple[Lane, LaneForecast]]:
    return [(lane, each) for lane, each in forecast.lanes.items() if lane is not Lane.BACKFILL]


def _none(name: str, count: int) -> Result:
    return Result(name, count, "", "= 0", count == 0)
