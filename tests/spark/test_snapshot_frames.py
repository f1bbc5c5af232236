"""`Snapshot.read`: frames of several queries are of one instant, and agree with Arrow (R-CON-4)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.read.frame import Scan
from tests.support.ledger import accept, reject, run_id
from tests.support.published import QUERY, key, open_book, publish, sorted_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


def test_a_join_of_frames_sees_one_instant(
    sqlite_template: Path, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "book.db").write_bytes(sqlite_template.read_bytes())
    both = [key(), key(query="clicks")]
    with open_book(f"sqlite:///{tmp_path}/book.db", tmp_path / "warehouse") as book:
        publish(book.ledger, book.settings.warehouse, [*both, key(1)], 1, rows=2)
        book.ledger.judge([accept(key(1), 2)])
        with book.snapshot() as at:
            first = at.read(QUERY, spark=spark)
            publish(book.ledger, book.settings.warehouse, both, 3, rows=2)
            book.ledger.judge([reject(key(1), 2, again="once more")])
            second = at.read("clicks", spark=spark)
            joined = first.join(second, on="customer_id").select(first.run_id, second.run_id).distinct()
            assert [tuple(row) for row in joined.collect()] == [(run_id(1), run_id(1))]
            table = at.table(QUERY, lineage=True)
            for scan in (Scan.SOURCE, Scan.PARQUET):
                frame = at.read(QUERY, spark=spark, scan=scan, lineage=True)
                assert frame.columns == table.column_names
                assert sorted_rows(frame.toArrow().to_pylist()) == sorted_rows(table.to_pylist())
