"""The validator against DuckDB and against Spark's own reader; how it grows, and what memory it needs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from bench.harness import Result, duration, medians, megabytes, seconds_of, speed
from bench.scale import sized
from bench.usage import cpu_seconds
from bench.validate_load import (
    CORES,
    Books,
    accept_all,
    dry_run_all,
    seal_large_run,
    seal_runs,
    session,
)
from bench.validate_peers import DuckDb, judge_natively

PARTITIONS = 5_000
ROWS = 200
FEW, MANY = 1_000, sized(small=5_000, full=20_000)
KEYS = sized(small=20_000, full=100_000)
LARGE = sized(small=2_000_000, full=5_000_000)
ROUNDS = sized(small=3, full=7)
WARM_ROUNDS = sized(small=4, full=10)


def run() -> list[Result]:
    """Measure on a local folder, with a ledger on SQLite."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*_usage(folder), *_against_peers(folder), _growth(folder)]


def _against_peers(folder: Path) -> list[Result]:
    spark, duck = session(), DuckDb()
    root = seal_runs(folder / "peers", PARTITIONS, ROWS)
    books = Books(folder, spark)

    def judged() -> None:
        assert _judge(books, root) == PARTITIONS

    def in_duckdb() -> None:
        assert duck.judge(root) == PARTITIONS

    with books.new(root) as validator:
        assert accept_all(validator) == PARTITIONS

        def rehearsed() -> None:
            assert dry_run_all(validator) == PARTITIONS

        contenders = (rehearsed, judged, in_duckdb)
        _warm_up(*contenders)
        used = [_cpu_seconds(contender) for contender in contenders]
        dry, whole, theirs = medians(ROUNDS, *contenders)
    natively = seconds_of(lambda: _judge_natively(spark, root))
    name = f"{PARTITIONS:,} partitions of {ROWS} rows"
    like_for_like = f"{name}, nothing written, against DuckDB"
    detail = f"{dry:.2f} s, DuckDB {theirs:.2f} s; processor time {used[0] / used[2]:.2f} x"
    written = f"{name}, verdicts written, against DuckDB, which writes none"
    detail_written = f"{whole:.2f} s; processor time {used[1] / used[2]:.2f} x"
    return [
        duration(like_for_like, dry, theirs, at_most=1.25, detail=detail),
        duration(written, whole, theirs, at_most=1.25, detail=detail_written),
        speed(
            f"{name}, verdicts written, against spark.read.json",
            whole,
            natively,
            at_least=8,
            detail=f"Spark {natively:.1f} s",
        ),
    ]


def _growth(folder: Path) -> Result:
    """Compare the time for many partitions with as many times that for few."""
    books = Books(folder, session())
    few = seal_runs(folder / "few", FEW, ROWS)
    many = seal_runs(folder / "many", MANY, ROWS)

    def judge(root: Path, partitions: int) -> None:
        assert _judge(books, root) == partitions

    taken = medians(3, lambda: judge(few, FEW), lambda: judge(many, MANY))
    detail = f"{taken[0]:.2f} s and {taken[1]:.2f} s"
    name = f"from {FEW:,} to {MANY:,} partitions, against linear"
    return duration(name, taken[1], taken[0] * (MANY / FEW), at_most=1.15, detail=detail)


def _usage(folder: Path) -> list[Result]:
    seal_runs(folder / "keys" / "raw", KEYS, rows=2)
    keys = _measured(folder / "keys", KEYS)
    seal_large_run(folder / "large" / "raw", LARGE)
    large = _measured(folder / "large", 1)
    return [
        megabytes(f"driver, Python and Java, {KEYS:,} keys", keys["driver_megabytes"], at_most=1_000),
        megabytes(f"a worker, one partition of {LARGE:,} rows", large["worker_megabytes"], at_most=1_000),
        Result(
            f"processor seconds a second, one partition of {LARGE:,} rows",
            large["cores_busy"],
            "cores",
            f">= {0.8 * CORES}",
            large["cores_busy"] >= 0.8 * CORES,
            f"{large['seconds']:.1f} s",
            why="It can only use cores that are free: where others work too, it does not get both.",
        ),
    ]


def _measured(folder: Path, accepted: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.validate_usage", str(folder)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    found: dict[str, float] = json.loads(said)
    assert found["accepted"] == accepted
    return found


def _judge(books: Books, root: Path) -> int:
    with books.new(root) as validator:
        return accept_all(validator)


def _judge_natively(spark: SparkSession, root: Path) -> None:
    assert judge_natively(spark, root) == PARTITIONS


def _warm_up(*contenders: Callable[[], object]) -> None:
    """Let Java compile what it finds hot, and the disk's pages get into memory."""
    for _ in range(WARM_ROUNDS):
        for contender in contenders:
            contender()


def _cpu_seconds(contender: Callable[[], object]) -> float:
    before = cpu_seconds()
    contender()
    return cpu_seconds() - before
