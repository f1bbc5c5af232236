"""The event log as Parquet files, and its fold on Spark: snapshots of a log of any size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow.parquet as pq

from sealbook.errors import ConfigError, NotFound
from sealbook.ledger.events import EventFeed, FeedEvent
from sealbook.model import RunEvent, RunSnapshot, fold_all
from sealbook.spark.tasks import run_tasks
from sealbook.status.event_rows import SCHEMA, event_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKETS = 16
"""Into how many folders the log is dealt; a run is wholly in one, so that each can be folded alone."""

_PAGE = 10_000
_BUCKET = "bucket={:03}"


def export_log(feed: EventFeed, folder: Path, *, buckets: int = BUCKETS) -> Iterator[int]:
    """Write the whole log as it is now below a new folder, and yield the number of events so far.

    `event` is the whole event as JSON; the other columns are there to be filtered by.
    """
    _make_empty(folder)
    written = position = 0
    with ExitStack() as files:
        writers: dict[int, pq.ParquetWriter] = {}
        while page := feed.fetch_feed(position, _PAGE):
            for bucket, rows in _dealt(page, buckets).items():
                if bucket not in writers:
                    path = folder / _BUCKET.format(bucket) / "part-00000.parquet"
                    path.parent.mkdir()
                    writers[bucket] = files.enter_context(pq.ParquetWriter(path, SCHEMA, compression="zstd"))
                writers[bucket].write_table(event_table(rows))
            position = page[-1].position
            written += len(page)
            yield written


def fold_log(spark: SparkSession, folder: Path) -> Iterator[RunSnapshot]:
    """Fold an exported log into the snapshot of each run, bucket by bucket on the cluster."""
    paths = sorted(map(str, folder.glob("bucket=*")))
    if not paths:
        raise NotFound(f"{folder} holds no exported log", remedy="`sealbook events export` writes one.")
    for snapshots in run_tasks(spark, paths, fold_bucket):
        yield from map(RunSnapshot.from_json, snapshots)


def fold_bucket(path: str) -> list[str]:
    """Fold the runs of one bucket, and return their snapshots as JSON."""
    table = pq.read_table(path, columns=["run_id", "run_seq", "event"], partitioning=None)
    ordered = table.sort_by([("run_id", "ascending"), ("run_seq", "ascending")])
    events = map(RunEvent.from_json, ordered.column("event").to_pylist())
    return [
        fold_all(RunSnapshot.pending(run_id), log).to_json()
        for run_id, log in groupby(events, attrgetter("run_id"))
    ]


def _make_empty(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be made a folder: {error.strerror}",
            remedy="Export to a new folder, in one that can be written to.",
        ) from error
    if taken:
        raise ConfigError(f"{folder} is not empty", remedy="Export to a new folder.")


def _dealt(page: Iterable[FeedEvent], buckets: int) -> dict[int, list[FeedEvent]]:
    dealt: dict[int, list[FeedEvent]] = defaultdict(list)
    for each in page:
        dealt[crc32(each.event.run_id.encode()) % buckets].append(each)
    return dealt
