"""Extraction on Spark against plain processes; memory; threads against a rate limit; ranges against days."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.harness import Result, duration, megabytes, peak_memory, seconds
from sealbook.config import Limits, SourceSettings, SparkSettings
from sealbook.extract.extractor import Extractor
from sealbook.extract.job import extract
from sealbook.extract.plan import deal
from sealbook.extract.ranges import Ranges, singles
from sealbook.extract.results import Ending
from sealbook.model import PartitionKey
from sealbook.spark.session import spark_session
from tests.support.extraction import demo_extractor, demo_keys
from tests.support.google_ads import Batch, GoogleAdsServer, google_ads_key, google_ads_query
from tests.support.google_ads_days import DAILY, Days, DaysServer, clicks
from tests.support.runs import new_run_id

PARTITIONS = 5_000
PROCESSES = 2
LATENCY_SECONDS = 0.02
REQUESTS_PER_SECOND = 150.0
REQUESTS = 300
ACCOUNTS = tuple(str(1_000_000_000 + number) for number in range(100))
QUERIES = ("campaign_daily", "ad_group_daily", "keyword_daily")
DAYS = [date(2026, 1, 1) + timedelta(days=number) for number in range(30)]


def run() -> list[Result]:
    """Measure on a local folder, and on a local Google Ads server."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            _against_processes(Path(folder)),
            *_memory(Path(folder)),
            *_threads(Path(folder)),
            _operations(Path(folder)),
        ]


def _against_processes(folder: Path) -> Result:
    keys = demo_keys(customers=50, days=PARTITIONS // 50)
    spark = spark_session(SparkSettings(master=f"local[{PROCESSES}]"))
    spare = iter(range(100))

    def fresh() -> Extractor:
        return demo_extractor(folder / str(next(spare)), threads=8, rows=200)

    def on_spark(of: list[PartitionKey] = keys) -> None:
        results = list(chain.from_iterable(extract(spark, fresh(), singles(of))))
        assert all(result.ending is Ending.SEALED for result in results)

    def in_processes() -> None:
        with get_context("spawn").Pool(PROCESSES) as pool:
            pool.map(fresh(), deal(singles(keys), PROCESSES), chunksize=1)

    on_spark(keys[:200])  # a warm session
    ours, peer = seconds(2, on_spark, in_processes)
    return duration(
        f"{PARTITIONS:,} partitions of 200 rows, against {PROCESSES} plain processes",
        ours,
        peer,
        at_most=1.5,
        detail=f"{PARTITIONS / ours:,.0f} partitions/s",
    )


def _memory(folder: Path) -> list[Result]:
    day = peak_memory(
        "from pathlib import Path\n"
        "from tests.support.extraction import demo_extractor, demo_keys\n"
        f"extractor = demo_extractor(Path({str(folder / 'large')!r}), rows=1_000_000)\n"
        "[result] = extractor([tuple(demo_keys(1, 1))])\n"
        "assert result.record_count == 1_000_000"
    )
    days = peak_memory(
        "from pathlib import Path\n"
        "from tests.support.ranged import RangedSource, days, ranged_extractor\n"
        "keys = tuple(days(30))\n"
        "line = b'{\"text\":\"' + b'x' * 150 + b'\"}'\n"
        "stream = ((key.logical_date, line) for key in keys for _ in range(33_334))\n"
        f"extractor = ranged_extractor(Path({str(folder / 'range')!r}), RangedSource(stream=stream))\n"
        "assert sum(result.record_count for result in extractor([keys])) == 1_000_020"
    )
    return [
        megabytes("peak memory of a worker, one partition of 1,000,000 rows", day, at_most=300),
        megabytes("peak memory of a worker, one range of 30 days and 1,000,000 rows", days, at_most=300),
    ]


def _threads(folder: Path) -> list[Result]:
    """Ask a server that takes 20 ms for each answer, with more and more threads, under one rate limit."""
    with _serving(_serve) as pipe:
        endpoint = pipe.recv()
        rates = {threads: _rate(folder, endpoint, threads) for threads in (1, 8, 32)}
    detail = ", ".join(f"{threads} threads {rate:,.0f}/s" for threads, rate in rates.items())
    gain = rates[8] / rates[1]
    excess = rates[32] / REQUESTS_PER_SECOND
    return [
        Result("Google Ads requests, 8 threads against 1", gain, "x speed", ">= 3", gain >= 3, detail),
        Result(
            f"Google Ads requests of 32 threads, against their limit of {REQUESTS_PER_SECOND:.0f}/s",
            excess,
            "x limit",
            "<= 1.1",
            excess <= 1.1,
        ),
    ]


@contextmanager
def _serving(serve: Callable[[Any], None]) -> Iterator[Any]:
    """Run a server in a process of its own, which ends when it is sent None."""
    ours, theirs = get_context("spawn").Pipe()
    server = get_context("spawn").Process(target=serve, args=(theirs,))
    server.start()
    try:
        yield ours
    finally:
        ours.send(None)
        server.join()


def _serve(pipe: Any) -> None:
    rows = [{"campaign": {"id": number}} for number in range(200)]
    with GoogleAdsServer(default=[Batch(["campaign.id"], rows)], latency_seconds=LATENCY_SECONDS) as server:
        pipe.send(server.endpoint)
        pipe.recv()


def _rate(folder: Path, endpoint: str, threads: int) -> float:
    extractor = Extractor(
        run_id=new_run_id(),
        source_type="google_ads",
        queries={"campaign_daily": google_ads_query()},
        raw_url=str(folder / "google_ads"),
        options={"endpoint": endpoint, "horizon_months": 1200},
        limits=Limits(requests_per_second=REQUESTS_PER_SECOND, threads=threads),
    )
    keys = [google_ads_key(day=date(2020, 1, 1) + timedelta(days=number)) for number in range(REQUESTS)]
    extractor(singles(keys[:1]))  # the client takes a second to import
    started = perf_counter()
    assert all(result.ending is Ending.SEALED for result in extractor(singles(keys[1:])))
    return (REQUESTS - 1) / (perf_counter() - started)


def _operations(folder: Path) -> Result:
    """Fetch a month of many accounts day by day and in ranges, and ask the server what that cost."""
    query = google_ads_query(DAILY)
    queries = {name: replace(query, name=name) for name in QUERIES}
    keys = [
        PartitionKey("google_ads", customer_id, name, day)
        for customer_id in ACCOUNTS
        for name in QUERIES
        for day in DAYS
    ]
    with _serving(_serve_days) as pipe:
        options = {"endpoint": pipe.recv()}
        together = Ranges(SourceSettings("google_ads", ACCOUNTS, queries, options)).gather(keys)
        asked = []
        for ranges in (singles(keys), together):
            extractor = Extractor(
                run_id=new_run_id(),
                source_type="google_ads",
                queries=queries,
                raw_url=str(folder / "operations"),
                options=options,
                resumes=False,
            )
            assert all(result.ending is Ending.SEALED for result in extractor(ranges))
            pipe.send("how many?")
            asked.append(pipe.recv())
    alone, operations = asked[0], asked[1] - asked[0]
    fewer = alone / operations
    return Result(
        "Google Ads operations, ranges against day by day:"
        f" {len(ACCOUNTS)} accounts, {len(QUERIES)} queries, {len(DAYS)} days",
        fewer,
        "x fewer",
        ">= 20",
        fewer >= 20,
        f"{operations:,} against {alone:,}, counted by the server",
    )


def _serve_days(pipe: Any) -> None:
    rows = {(customer_id, day): clicks(1, 2) for customer_id in ACCOUNTS for day in DAYS}
    with DaysServer(Days(rows)) as server:
        pipe.send(server.endpoint)
        while pipe.recv() is not None:
            pipe.send(len(server.requests))
