"""Each stage and read on an object store, against the same on a folder.

Promised is at most the time on a folder and twice what the requests have to wait, 32 in flight. What the
server takes for as many bare requests stands beside it: less than that nobody can take.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from bench.harness import Result, seconds_of
from bench.slow_s3 import SlowS3, slow_s3, waiting
from sealbook.book import Book
from sealbook.config import RetentionSettings, Settings, SourceSettings, SparkSettings
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection
from tests.support.extraction import FIRST_DAY, demo_keys, demo_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITIONS = int(os.environ.get("S3_PARTITIONS", "1000"))
CUSTOMERS = 20
ROWS = 50
QUERY = "campaign_daily"
_TIMES_WAITED = 2.0

Work = Callable[[Book], object]


def run() -> list[Result]:
    """Measure with a ledger on SQLite and two cores, with as many requests in flight for each."""
    keys = demo_keys(CUSTOMERS, PARTITIONS // CUSTOMERS)
    work: dict[str, Work] = {
        "extract": lambda book: _check(book.extract(_chosen(keys)).sealed),
        "validate": lambda book: _check(book.validate().accepted),
        "load": lambda book: _check(book.load().published),
        "table": lambda book: _check(book.table(QUERY).num_rows // ROWS),
        "sql": lambda book: _check(
            book.sql(f"select count(*), max(metrics_clicks) from {QUERY}").num_rows, 1
        ),
        "read from Spark": lambda book: _aggregate(book.read(QUERY)),
    }
    with tempfile.TemporaryDirectory() as folder, slow_s3() as s3:
        local = Book(_settings(Path(folder), "local", str(Path(folder) / "store")))
        remote = Book(_settings(Path(folder), "remote", s3.url("store")))
        with closing(local), closing(remote):
            _warm_up(Path(folder))
            return [_compare(name, act, local, remote, s3) for name, act in work.items()]


def _compare(name: str, act: Work, local: Book, remote: Book, s3: SlowS3) -> Result:
    on_folder = seconds_of(lambda: act(local))
    before = s3.requests
    on_s3 = seconds_of(lambda: act(remote))
    requests = s3.requests - before
    bare = s3.bare_seconds(requests)
    times = (on_s3 - on_folder) / waiting(requests)
    detail = (
        f"{on_s3:.2f} s, folder {on_folder:.2f} s; {requests:,} requests wait {waiting(requests):.2f} s;"
        f" bare they take {bare / waiting(requests):.2f} x"
    )
    what = f"{name} {PARTITIONS:,} partitions on S3: time beyond the folder's, by what its requests wait"
    return Result(what, times, "x time", f"<= {_TIMES_WAITED}", times <= _TIMES_WAITED, detail)


def _settings(folder: Path, name: str, store: str) -> Settings:
    customers = tuple(f"c{number}" for number in range(CUSTOMERS))
    source = SourceSettings("demo", customers, demo_queries(), {"rows": ROWS})
    return Settings(
        root=folder,
        ledger=f"sqlite:///{folder}/{name}.db",
        raw=f"{store}/raw",
        warehouse=f"{store}/warehouse",
        sources={"demo": source},
        spark=SparkSettings(master="local[2]"),
        retention=RetentionSettings(f"{store}/archive"),
    )


def _warm_up(folder: Path) -> None:
    """Do all of it once, for a few partitions, so that neither of the two pays for Spark's start."""
    with closing(Book(_settings(folder, "warm", str(folder / "warm")))) as book:
        book.run(_chosen(demo_keys(2, 2)))
        _aggregate(book.read(QUERY, scan="source"))
        book.table(QUERY)
        book.sql(f"select count(*) from {QUERY}")


def _chosen(keys: list[PartitionKey]) -> Selection:
    return Selection(
        source="demo",
        customers={key.customer_id for key in keys},
        queries=QUERY,
        since=FIRST_DAY,
        until=max(key.logical_date for key in keys),
    )


def _check(found: int, expected: int = PARTITIONS) -> None:
    assert found == expected, f"{found}, not {expected}"


def _aggregate(frame: DataFrame) -> None:
    assert frame.agg(F.count("*"), F.max("metrics_clicks")).collect()[0][0] > 0
