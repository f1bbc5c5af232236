"""`Book.diff` of many partitions: tasks on Spark say the same as this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.book import Book
from sealbook.model.run_diff import RunDiff
from sealbook.model.selection import Selection
from sealbook.read.diff import FEW
from tests.support.published import QUERY, key, open_book, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


def test_many_partitions_are_compared_on_spark(
    sqlite_template: Path, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "book.db").write_bytes(sqlite_template.read_bytes())
    settings = open_book(f"sqlite:///{tmp_path}/book.db", tmp_path / "warehouse").settings
    with Book(replace(settings, raw=str(tmp_path / "raw"))) as book:
        keys = [key(0, day) for day in range(FEW + 1)]
        for number in (1, 2):
            publish(book.ledger, settings.warehouse, keys, number, rows=2)
        on_spark = book.diff(Selection(queries=QUERY), spark=spark)
        here = [book.diff(Selection(keys=[each]))[0] for each in keys[:2]]
    assert [each.key for each in on_spark] == keys
    assert on_spark[:2] == here
    assert all(isinstance(each, RunDiff) and each.rows.added == 2 for each in on_spark)
