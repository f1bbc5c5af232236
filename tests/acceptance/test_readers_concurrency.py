"""Rows, not only pointers: Arrow readers in processes of their own, and Spark, among all who change them."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.warehouse.spark_reader import Scan
from tests.support.published import QUERY, open_book
from tests.support.traffic import (
    FileParty,
    Reader,
    Seen,
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

pytestmark = pytest.mark.xdist_group("spark")

SPARK_READS = 4


def test_readers_of_rows_among_writers(
    ledger_url: str, processes: ForkServerContext, tmp_path: Path, spark: SparkSession
) -> None:
    """R-CON-1, R-WH-3, R-WH-5: one run of each partition, whole; no unfit one; no mixed instant.

    On each database; a clean-up is at work too, and takes nothing away from a reader.
    """
    warehouse = str(tmp_path / "warehouse")
    make = partial(FileParty, warehouse=warehouse)
    actors = [judge_rounds, load_on, roll_back_on, read_on, read_on, clean_on]
    scans = cycle([Scan.SOURCE, Scan.PARQUET])
    with (
        open_book(ledger_url, warehouse) as book,
        traffic(processes, ledger_url, make, actors) as (signals, said),
    ):

        def see() -> Seen:
            frame = book.read(QUERY, spark=spark, scan=next(scans))
            return checked_rows(frame.groupBy("customer_id", "run_id", "clicks").count().collect())

        reader = Reader(book.ledger, see)
        while len(reader.waves) < SPARK_READS and not signals.done.is_set():
            reader.read()
    assert len(reader.waves) == SPARK_READS
    assert len(set(reader.waves)) > 1, "Spark saw no replacement"
    assert said["read_on"] > 2, "the readers saw no replacement"
    assert said["roll_back_on"] > 0
    assert said["clean_on"] > 0
    party = make(ledger_url)
    with party.book:
        check_settled(party)
