"""Rows, not only pointers: Arrow readers in processes of their own, and Spark, among all who change them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.read.frame import Scan
from tests.support.published import QUERY
from tests.support.traffic import (
    ROW,
    FileParty,
    Reader,
    Seen,
    begin,
    check_settled,
    checked_rows,
    clean_on,
    judge_rounds,
    load_on,
    read_on,
    roll_back_on,
    traffic,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_READS = 3


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], FileParty]:
    """Make parties that work on one warehouse."""
    return partial(FileParty, warehouse=str(tmp_path / "warehouse"))


def test_readers_of_rows_among_writers(
    ledger_url: str, processes: ForkServerContext, make: Callable[[str], FileParty]
) -> None:
    """R-CON-1, R-WH-3, R-WH-5: one run of each partition, whole; no unfit one; no mixed instant.

    A clean-up is at work too, and takes nothing away from a reader.
    """
    actors = [judge_rounds, load_on, load_on, roll_back_on, read_on, read_on, clean_on]
    party = make(ledger_url)
    with party.book:
        begin(party)
    with traffic(processes, ledger_url, make, actors) as (_, said):
        pass
    assert said["read_on"] > 2, "the readers saw no replacement"
    assert said["roll_back_on"] > 0
    assert said["clean_on"] > 0
    with party.book:
        check_settled(party)


@pytest.mark.xdist_group("spark")
def test_spark_among_writers(
    ledger_url: str,
    processes: ForkServerContext,
    make: Callable[[str], FileParty],
    spark: SparkSession,
) -> None:
    """The same of Spark, by both scans, while one Arrow reader is at work beside it."""
    scans = cycle([Scan.SOURCE, Scan.PARQUET])
    reading = make(ledger_url)

    def see() -> Seen:
        frame = reading.book.read(QUERY, spark=spark, scan=next(scans), columns=ROW)
        return checked_rows(frame.collect())

    actors = [judge_rounds, load_on, roll_back_on, read_on]
    with reading.book:
        begin(reading)
        for _ in range(2):
            see()  # the first read by each scan takes its time
        with traffic(processes, ledger_url, make, actors, guests=1) as (signals, said):
            reader = Reader(reading.ledger, see)
            while not signals.done.is_set() and not (
                len(reader.waves) >= SPARK_READS and len(set(reader.waves)) > 1
            ):
                reader.read()
            signals.enough.release()
    assert len(reader.waves) >= SPARK_READS
    assert len(set(reader.waves)) > 1, "Spark saw no replacement"
    assert said["read_on"] > 2, "the reader saw no replacement"
