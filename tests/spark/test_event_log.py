"""The exported log, folded on Spark, gives the store's own snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from sealbook.errors import NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.model import RunStatus
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.step_events import run_ended, run_started, step_completed, step_started
from sealbook.status.event_log import export_log, fold_log
from tests.support.extraction import demo_keys
from tests.support.runs import new_run_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

RUNS = 9


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A log of several runs, told in turn, with one event that no move allows."""
    opened = open_ledger(f"sqlite:///{tmp_path}/book.db")
    runs = [new_run_id() for _ in range(RUNS)]
    for number, key in enumerate(demo_keys(customers=4, days=5)):
        for run in runs:
            begin = [run_started(run), step_started(run, Stage.EXTRACT)] if number == 0 else []
            failed = PartitionFailed(
                key=key, run_id=run, attempt="1",
                failed_stage=Stage.EXTRACT, error_class=ErrorClass.QUOTA, error="later",
            )  # fmt: skip
            opened.run_store.append_events([*begin, failed.to_event()])
    for run in runs[::2]:
        closing = [step_completed(run, Stage.EXTRACT), run_ended(run, RunStatus.FAILED, error="all")]
        opened.run_store.append_events([*closing, step_started(run, Stage.LOAD)])
    return opened


def test_the_fold_of_an_exported_log_equals_the_store_s_own_snapshots(
    spark: SparkSession, ledger: Ledger, tmp_path: Path
) -> None:
    """R-EVT-7: replay equals projection, on a cluster too."""
    with ledger:
        *_, written = export_log(ledger.run_store, tmp_path / "log", buckets=4)
        assert written == len(ledger.run_store.fetch_feed(limit=10_000))

        folded = {snapshot.run_id: snapshot for snapshot in fold_log(spark, tmp_path / "log")}

        assert len(folded) == RUNS
        assert any(snapshot.inconsistent for snapshot in folded.values())
        for run_id, snapshot in folded.items():
            assert snapshot == ledger.run_store.project_snapshot(run_id)


def test_the_files_can_be_filtered_without_reading_the_events(ledger: Ledger, tmp_path: Path) -> None:
    with ledger:
        list(export_log(ledger.run_store, tmp_path / "log"))

    table = pq.read_table(tmp_path / "log", filters=[("event_type", "=", "RunFailed")])

    assert table.num_rows == len(range(0, RUNS, 2))
    assert table.column("persisted_at").type.tz == "UTC"


def test_a_folder_without_a_log_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=str(tmp_path)):
        list(fold_log(spark, tmp_path))
