"""`sealbook run` of one partition, from prompt to summary, against a bare Spark session; and a warm one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from statistics import median

import sealbook
from bench.harness import BUSY, Result, duration, seconds_of
from bench.scale import sized
from bench.usage import cpu_seconds
from sealbook import Selection
from sealbook.model import PartitionKey, RunStatus
from tests.acceptance.test_cli_run import write_book
from tests.support.cli import SEALBOOK

ROUNDS = sized(small=2, full=3)
WARM_ROUNDS = 5
LONGEST_SECONDS_TO_MAKE = 300

_BARE = """
from pyspark.sql import SparkSession
assert SparkSession.builder.master("local[2]").getOrCreate().range(10).count() == 10
"""


def run() -> list[Result]:
    """Measure each in a process of its own, in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        book = write_book(folder, rows=200)
        keys = _keys()
        alone, first, later = [], [], []
        for number in range(ROUNDS):
            cache = folder / f"cache{number}"
            alone.append(seconds_of(bare))
            first.append(seconds_of(partial(_run, book, next(keys), cache)))
            wait_for_archive(cache)
            alone.append(seconds_of(bare))
            later.append(seconds_of(partial(_run, book, next(keys), cache)))
        peer = median(alone)
        detail = f"bare: {peer:.1f} s"
        return [
            duration(
                "run of one partition, first time on a machine",
                median(first),
                peer,
                at_most=1.8,
                detail=detail,
            ),
            duration("run of one partition, later", median(later), peer, at_most=1.2, detail=detail),
            _warm(book, keys),
        ]


def _warm(book: Path, keys: Iterator[PartitionKey]) -> Result:
    with sealbook.open(book) as opened:

        def whole_way() -> None:
            assert opened.run(Selection(keys=[next(keys)])).status is RunStatus.COMPLETED

        whole_way()
        used = cpu_seconds()
        taken = median(seconds_of(whole_way) for _ in range(WARM_ROUNDS))
        used = (cpu_seconds() - used) / WARM_ROUNDS
    detail = f"{used:.2f} s of processor time"
    return Result("run of one partition in a warm session", taken, "s", "< 1", taken < 1, detail, BUSY)


def bare() -> None:
    """Start Spark, count, and end."""
    subprocess.run([sys.executable, "-c", _BARE], check=True, capture_output=True)


def _run(book: Path, key: PartitionKey, cache: Path) -> None:
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    subprocess.run([SEALBOOK, "run", str(key)], cwd=book, env=env, check=True, capture_output=True)


def wait_for_archive(cache: Path) -> None:
    """Wait for the process that the first run has left behind, which would take its share of the cores."""
    deadline = time.monotonic() + LONGEST_SECONDS_TO_MAKE
    while not list(cache.glob("sealbook/*.jsa")):
        assert time.monotonic() < deadline, "nobody has made the archive"
        time.sleep(0.1)


def _keys() -> Iterator[PartitionKey]:
    day = date(2026, 1, 1)
    while True:
        yield PartitionKey("demo", "c0", "campaign_daily", day)
        day += timedelta(days=1)
