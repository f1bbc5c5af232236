"""Extraction on Spark against the same work in plain processes; memory; threads against a rate limit."""

from __future__ import annotations

import tempfile
from datetime import date, timedelta
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.harness import Result, duration, megabytes, peak_memory, seconds
from sealbook.config import Limits, SparkSettings
from sealbook.extract.extractor import Extractor
from sealbook.extract.job import extract
from sealbook.extract.plan import deal
from sealbook.extract.results import Ending
from sealbook.model import PartitionKey
from sealbook.spark.session import spark_session
from tests.support.extraction import demo_extractor, demo_keys
from tests.support.google_ads import Batch, GoogleAdsServer, google_ads_key, google_ads_query
from tests.support.runs import new_run_id

PARTITIONS = 5_000
PROCESSES = 2
LATENCY_SECONDS = 0.02
REQUESTS_PER_SECOND = 150.0
REQUESTS = 300


def run() -> list[Result]:
    """Measure on a local folder, and on a local Google Ads server."""
    with tempfile.TemporaryDirectory() as folder:
        return [_against_processes(Path(folder)), _memory(Path(folder)), *_threads(Path(folder))]


def _against_processes(folder: Path) -> Result:
    keys = demo_keys(customers=50, days=PARTITIONS // 50)
    spark = spark_session(SparkSettings(master=f"local[{PROCESSES}]"))
    spare = iter(range(100))

    def fresh() -> Extractor:
        return demo_extractor(folder / str(next(spare)), threads=8, rows=200)

    def on_spark(of: list[PartitionKey] = keys) -> None:
        results = list(chain.from_iterable(extract(spark, fresh(), of)))
        assert all(result.ending is Ending.SEALED for result in results)

    def in_processes() -> None:
        with get_context("spawn").Pool(PROCESSES) as pool:
            pool.map(fresh(), deal(keys, PROCESSES), chunksize=1)

    on_spark(keys[:200])  # a warm session
    ours, peer = seconds(2, on_spark, in_processes)
    return duration(
        f"{PARTITIONS:,} partitions of 200 rows, against {PROCESSES} plain processes",
        ours,
        peer,
        at_most=1.5,
        detail=f"{PARTITIONS / ours:,.0f} partitions/s",
    )


def _memory(folder: Path) -> Result:
    peak = peak_memory(
        "from pathlib import Path\n"
        "from tests.support.extraction import demo_extractor, demo_keys\n"
        f"[result] = demo_extractor(Path({str(folder / 'large')!r}), rows=1_000_000)(demo_keys(1, 1))\n"
        "assert result.record_count == 1_000_000"
    )
    return megabytes("peak memory of a worker, one partition of 1,000,000 rows", peak, at_most=300)


def _threads(folder: Path) -> list[Result]:
    """Ask a server that takes 20 ms for each answer, with more and more threads, under one rate limit."""
    ours, theirs = get_context("spawn").Pipe()
    server = get_context("spawn").Process(target=_serve, args=(theirs,))
    server.start()
    try:
        endpoint = ours.recv()
        rates = {threads: _rate(folder, endpoint, threads) for threads in (1, 8, 32)}
    finally:
        ours.send(None)
        server.join()
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


def _serve(pipe: Any) -> None:
    rows = [{"campaign": {"id": number}} for number in range(200)]
    with GoogleAdsServer(default=[Batch(["campaign.id"], rows)], latency_seconds=LATENCY_SECONDS) as server:
        pipe.send(server.endpoint)
        pipe.recv()


def _rate(folder: Path, endpoint: str, threads: int) -> float:
    extractor = Extractor(
        run_id=new_run_id(),
        source_name="google_ads",
        queries={"campaign_daily": google_ads_query()},
        raw_url=str(folder / "google_ads"),
        options={"endpoint": endpoint, "horizon_months": 1200},
        limits=Limits(requests_per_second=REQUESTS_PER_SECOND, threads=threads),
    )
    keys = [google_ads_key(day=date(2020, 1, 1) + timedelta(days=number)) for number in range(REQUESTS)]
    extractor(keys[:1])  # the client takes a second to import
    started = perf_counter()
    assert all(result.ending is Ending.SEALED for result in extractor(keys[1:]))
    return (REQUESTS - 1) / (perf_counter() - started)
