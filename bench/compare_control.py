"""The control plane: a year of many customers on a virtual clock; claims and plans beside bare SQL, Dagster.

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
    """Measure the simulation, and the ledger's side on both databases."""
    return [*simulated(), *control_load.run()]


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


def _waits(forecast: Forecast) -> list[tuple[Lane, LaneForecast]]:
    return [(lane, each) for lane, each in forecast.lanes.items() if lane is not Lane.BACKFILL]


def _none(name: str, count: int) -> Result:
    return Result(name, count, "", "= 0", count == 0)
