"""Partitions by the million as a book has them after a year: most are fine, some of everything else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, insert

from bench.scale import sized
from sealbook.ledger import Ledger
from sealbook.ledger.db.bulk import insert_rows
from sealbook.ledger.events.projections import begin
from sealbook.ledger.events.tables import run_head
from sealbook.ledger.states.tables import validator
from sealbook.ledger.status.tables import (
    MICROSECONDS_A_DAY,
    day_number,
    partition_status,
    status_series,
)
from sealbook.model.expectations import Expectations
from sealbook.model.freshness import Freshness
from sealbook.model.staleness import CodeInForce
from sealbook.model.universe import Account, Asset, AssetName, Universe, Upstream

CUSTOMERS = sized(small=250, full=1_000)
DAYS = 250
QUERIES = ("ad_group_daily", "campaign_daily", "device_daily", "summary_daily")
FIRST = date(2025, 3, 1)
CONTRACT, EARLIER = "1" * 64, "2" * 64

_ASSETS = [AssetName("demo", name) for name in QUERIES]
_HOUR = 3_600_000_000
_ZONES = (UTC, ZoneInfo("America/Los_Angeles"), ZoneInfo("Europe/Paris"), ZoneInfo("Asia/Tokyo"))
_POLICY = Freshness((timedelta(hours=6), timedelta(days=3), timedelta(days=7)), timedelta(hours=12))


def expectations(*upstreams: Upstream, days: int = DAYS) -> Expectations:
    """Hold all four queries against a policy and a contract; the last is made of others, as is given."""
    assets = {name: Asset(name, _POLICY) for name in _ASSETS}
    assets[_ASSETS[3]] = Asset(_ASSETS[3], _POLICY, upstreams)
    accounts = {
        each: Account(each, _ZONES[place % 4], FIRST - timedelta(days=place % 90))  # missing until FIRST
        for place, each in enumerate(customers())
    }
    since = datetime(2025, 5, 1, tzinfo=UTC)
    in_force = {name: CodeInForce(CONTRACT, since) for name in assets}
    now = datetime(FIRST.year, FIRST.month, FIRST.day, 20, tzinfo=UTC) + timedelta(days=days)
    return Expectations(Universe(assets, {"demo": accounts}), now, in_force)


SAME_DAY = Upstream(_ASSETS[0])
WEEK = Upstream(_ASSETS[0], -6, 0)
ALL_CUSTOMERS = Upstream(_ASSETS[0], all_customers=True)


def customers() -> list[str]:
    """Return the customers."""
    return [str(1_000_000_000 + number) for number in range(CUSTOMERS)]


def fill(ledger: Ledger, days: int = DAYS) -> None:
    """Write the rows that a projection would have made, day by day as they come about."""

    def work(connection: Connection) -> None:
        projection_id = begin(connection, "partition_status").id
        runs = [{"run_id": f"{day:026d}", "last_seq": 1} for day in range(days)]
        connection.execute(insert(run_head), runs)
        for each in (CONTRACT, EARLIER):
            values = {"digest": each, "version": each, "checks": [], "contract_hash": each}
            connection.execute(insert(validator).values(values))
        names = (
            {"projection_id": projection_id, "source": "demo", "customer_id": each, "query_name": query}
            for each in customers()
            for query in QUERIES
        )
        connection.execute(insert(status_series), list(names))
        for day in range(days):
            insert_rows(connection, partition_status, list(_rows(day)))

    ledger._database.write(work)  # noqa: SLF001 - the projector would take as long as it does anywhere


def _rows(day: int) -> Iterator[tuple[object, ...]]:
    chance = random.Random(day)
    number = day_number(FIRST) + day
    settled = (number + 1) * MICROSECONDS_A_DAY + 8 * 24 * _HOUR
    for series_id in range(1, CUSTOMERS * len(QUERIES) + 1):
        version = day * CUSTOMERS * len(QUERIES) + series_id
        # Downstream comes after what it is made of, as series are numbered.
        at = settled + series_id * 1_000 - (chance.random() < 0.03) * 7 * 24 * _HOUR
        luck = chance.random()
        failed = luck < 0.03
        availability = "behind" if luck > 0.99 else "hidden" if luck > 0.985 else "published"
        yield (
            *(series_id, number, availability, at, at + failed * _HOUR),
            *("FAILED" if failed else "SUCCEEDED", "validate" if failed else None),
            *(2 if chance.random() < 0.02 else 1, day + 1, day + 1),
            *(version, version, at, version, None, None),
        )
