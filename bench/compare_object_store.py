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

from bench.demo_book import QUERY, check, chosen, count_rows, demo_book
from bench.harness import Result, seconds_of
from bench.slow_s3 import SlowS3, slow_s3, waiting
from sealbook.book import Book
from tests.support.extraction import demo_keys

PARTITIONS = int(os.environ.get("S3_PARTITIONS", "1000"))
CUSTOMERS = 20
ROWS = 50
_TIMES_WAITED = 2.0
_SAME_CORES = (
    "The server works on the same cores: see how long as many bare requests took, beside others' work."
)

Work = Callable[[Book], object]


def run() -> list[Result]:
    """Measure with a ledger on SQLite and two cores, with as many requests in flight for each."""
    keys = demo_keys(CUSTOMERS, PARTITIONS // CUSTOMERS)
    work: dict[str, Work] = {
        "extract": lambda book: check(book.extract(chosen(keys)).sealed, PARTITIONS),
        "validate": lambda book: check(book.validate().accepted, PARTITIONS),
        "load": lambda book: check(book.load().published, PARTITIONS),
        "table": lambda book: check(book.table(QUERY).num_rows, PARTITIONS * ROWS),
        "sql": lambda book: check(book.sql(f"select count(*), max(metrics_clicks) from {QUERY}").num_rows, 1),
        "read from Spark": lambda book: check(count_rows(book.read(QUERY)), PARTITIONS * ROWS),
    }
    with tempfile.TemporaryDirectory() as folder, slow_s3() as s3:
        local = _book(Path(folder), "local", str(Path(folder) / "store"))
        remote = _book(Path(folder), "remote", s3.url("store"))
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
    return Result(what, times, "x time", f"<= {_TIMES_WAITED}", times <= _TIMES_WAITED, detail, _SAME_CORES)


def _book(folder: Path, name: str, store: str) -> Book:
    return demo_book(folder, f"sqlite:///{folder}/{name}.db", store, customers=CUSTOMERS, rows=ROWS)


def _warm_up(folder: Path) -> None:
    """Do all of it once, for a few partitions, so that neither of the two pays for Spark's start."""
    with closing(_book(folder, "warm", str(folder / "warm"))) as book:
        book.run(chosen(demo_keys(2, 2)))
        count_rows(book.read(QUERY, scan="source"))
        book.table(QUERY)
        book.sql(f"select count(*) from {QUERY}")
