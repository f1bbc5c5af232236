"""Loading on Spark: what is accepted is published, whole, once, and the same every time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from sealbook.ledger import open_ledger
from sealbook.load import loading, orders
from sealbook.load.loading import Loading
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import Verdict
from sealbook.model.failures import ErrorClass
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from sealbook.warehouse.cleanup import Cleanup
from sealbook.warehouse.store import ArtifactStore
from tests.support.deadly import DeadlyRaw
from tests.support.extraction import demo_keys, demo_queries
from tests.support.loading import Warehouse, no_spark
from tests.support.stagers import KilledStager, Moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

KEYS = demo_keys(customers=3, days=4)
KEY = KEYS[0]


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """An empty warehouse."""
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        yield Warehouse(tmp_path, ledger)


@pytest.fixture
def loaded(spark: SparkSession, warehouse: Warehouse) -> Warehouse:
    """A warehouse with one run of each partition published."""
    warehouse.accept(KEYS, warehouse.seal(KEYS))
    assert _endings(warehouse.load(spark).values()) == {LoadEnding.LOADED}
    return warehouse


def _endings(results: object) -> set[LoadEnding]:
    return {result.ending for result in results}  # type: ignore[attr-defined]


def test_rows_are_those_of_the_payload_in_its_order_with_the_types_of_the_contract(loaded: Warehouse) -> None:
    """R-WH-2."""
    raw = RawStore.open(loaded.raw_url)
    contract = demo_queries()["campaign_daily"].contracts["1"]
    for each in loaded.published():
        [file] = loaded.parts(each)
        table = pq.read_table(file, partitioning=None)
        assert table.column_names == [column.name for column in contract.columns]
        lines = [line.decode() for line in raw.read(each.key, each.run_id).lines()]
        ids = [f'"campaign_id":{number},' for number in table.column("campaign_id").to_pylist()]
        assert all(number in line for number, line in zip(ids, lines, strict=True))
        assert set(table.column("segments_date").to_pylist()) == {each.logical_date}
    loaded.check_intact()


def test_with_nothing_to_do_spark_is_not_started(loaded: Warehouse) -> None:
    loader = loaded.loader(no_spark)
    plan = loader.plan(Selection())
    assert len(plan) == 0
    assert list(loader.run(plan)) == []


def test_the_same_payload_shares_files_and_is_staged_as_them_when_they_are_gone(
    spark: SparkSession, loaded: Warehouse
) -> None:
    """R-WH-2: also after a clean-up took the files, whichever of the runs is loaded again."""
    before = loaded.files()
    same = loaded.seal(KEYS)
    loaded.accept(KEYS, same)
    loader = loaded.loader(no_spark)
    assert _endings(chain.from_iterable(loader.run(loader.plan(Selection())))) == {LoadEnding.IDENTICAL}
    assert (loaded.files(), {each.run_id for each in loaded.published()}) == (before, {same})
    [drift] = loaded.ledger.pointers.drift_sums()
    assert (drift.replacements, drift.unchanged, drift.rows, drift.change) == (len(KEYS), len(KEYS), 60, 0)
    records = list(loaded.ledger.pointers.load_records())
    newer = loaded.seal([KEY], restatement=3)
    loaded.accept([KEY], newer)
    loaded.load(spark)
    artifacts = ArtifactStore.open(loaded.url)
    assert [each.key for each in Cleanup(loaded.ledger.pointers, artifacts, timedelta(0)).remove()] == [KEY]
    loaded.ledger.rollback(KEY, same, actor="ann", reason="to see")

    assert loaded.load(spark)[KEY].ending is LoadEnding.LOADED

    shared = next(each for each in loaded.published() if each.key == KEY)
    assert (shared.run_id, shared.copy) == (same, 1)
    assert [each for each in loaded.ledger.pointers.load_records() if each.run_id != newer] == records
    loaded.check_intact()
    assert len(loaded.rows()[KEY]) == 5
    loader = loaded.loader(lambda: spark)
    checked = list(chain.from_iterable(loader.run(loader.plan(Selection(), rebuild=True))))
    assert (len(checked), _endings(checked)) == (len(KEYS) + 1, {LoadEnding.UNCHANGED})


def test_a_new_run_replaces_wholly_and_a_demotion_hides(spark: SparkSession, loaded: Warehouse) -> None:
    """R-WH-1, R-WH-5: and nothing else is touched."""
    before = {each.key: each for each in loaded.published()}
    newer = loaded.seal([KEY], restatement=3)
    loaded.accept([KEY], newer)
    loaded.demote(KEYS[1], before[KEYS[1]].run_id)

    results = loaded.load(spark)

    assert {key: result.ending for key, result in results.items()} == {
        KEY: LoadEnding.REPLACED,
        KEYS[1]: LoadEnding.HIDDEN,
    }
    after = {each.key: each for each in loaded.published()}
    assert after[KEY].run_id == newer
    assert after.keys() == before.keys() - {KEYS[1]}
    assert {key: after[key] for key in KEYS[2:]} == {key: before[key] for key in KEYS[2:]}
    [drift] = loaded.ledger.pointers.drift_sums()
    assert (drift.replacements, drift.compared, drift.unchanged, drift.rows) == (1, 1, 0, 5)
    assert (drift.changed > 0, set(drift.columns) <= set(contract_columns())) == (True, True)
    assert drift.change == max(drift.columns.values()) > 0


def contract_columns() -> list[str]:
    """Return the names of what is loaded."""
    return [column.name for column in demo_queries()["campaign_daily"].contracts["1"].columns]


def test_progress_counts_every_partition_once_however_it_ends(spark: SparkSession, loaded: Warehouse) -> None:
    loaded.accept(KEYS[:2], loaded.seal(KEYS[:2], restatement=3))
    loaded.accept([KEYS[2]], loaded.seal([KEYS[2]], restatement=3), rows=6)  # not what the payload has
    loaded.demote(KEYS[3], loaded.published()[3].run_id)
    heard: list[tuple[int, int, int]] = []
    loader = loaded.loader(lambda: spark)
    plan = loader.plan(Selection(), rebuild=True)

    results = list(
        chain.from_iterable(
            loader.run(plan, lambda partitions, *, rows, size: heard.append((partitions, rows, size)))
        )
    )

    assert [sum(each) for each in zip(*heard, strict=True)] == [
        len(results),
        sum(result.record_count for result in results),
        sum(result.bytes for result in results),
    ]
    assert _endings(results) == {
        LoadEnding.REPLACED,
        LoadEnding.FAILED,
        LoadEnding.HIDDEN,
        LoadEnding.UNCHANGED,
    }


def test_authority_that_moves_between_plan_and_swap_is_left_alone_and_reported(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    """R-WH-3."""
    warehouse.accept(KEYS, warehouse.seal(KEYS))
    loader = warehouse.loader(lambda: spark)
    plan = loader.plan(Selection())
    warehouse.accept([KEY], warehouse.seal([KEY], restatement=1))

    results = {each.key: each for each in chain.from_iterable(loader.run(plan))}

    assert results[KEY].ending is LoadEnding.SKIPPED
    assert "moved on" in str(results[KEY].reason)
    assert _endings(results[key] for key in KEYS[1:]) == {LoadEnding.LOADED}
    assert KEY not in {each.key for each in warehouse.published()}
    assert warehouse.load(spark)[KEY].ending is LoadEnding.LOADED


def test_one_that_cannot_be_staged_leaves_the_others_alone(spark: SparkSession, warehouse: Warehouse) -> None:
    run_id = warehouse.seal(KEYS)
    warehouse.accept(KEYS[1:], run_id)
    warehouse.accept([KEY], run_id, rows=6)  # not what the payload has
    changed, unreadable = (
        Path(warehouse.raw_url) / RawStore.open(warehouse.raw_url).read(key, run_id).path
        for key in (KEYS[1], KEYS[2])
    )
    changed.write_bytes(changed.read_bytes().replace(b"MOBILE", b"mobile"))
    unreadable.unlink()
    unreadable.mkdir()  # reading a folder fails, and not as something missing does

    results = warehouse.load(spark)

    failed = {key: result for key, result in results.items() if result.ending is LoadEnding.FAILED}
    assert {key: result.error_class for key, result in failed.items()} == {
        KEY: ErrorClass.PERMANENT,
        KEYS[1]: ErrorClass.PERMANENT,
        KEYS[2]: ErrorClass.TRANSIENT,
    }
    assert "accepted with 6" in str(results[KEY].reason)
    assert "not what was sealed" in str(results[KEYS[1]].reason)
    assert {each.key for each in warehouse.published()} == set(KEYS[3:])
    assert all(results[key].error_class is None for key in KEYS[3:])


def test_a_schema_version_without_a_contract_is_refused_by_name(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    key = demo_keys(1, 1, "unknown_query")[0]
    warehouse.accept([key], warehouse.seal(KEYS[:1]))

    result = warehouse.load(spark)[key]

    assert result.ending is LoadEnding.FAILED
    assert "demo/unknown_query has no contract for schema_version '1'" in str(result.reason)


def test_deleted_artifacts_come_back_with_the_same_bytes_and_the_same_record(
    spark: SparkSession, loaded: Warehouse
) -> None:
    """R-WH-2: loaded_at included."""
    files, records = loaded.files(), list(loaded.ledger.pointers.load_records())
    published = loaded.published()
    for each in published[:5]:
        loaded.parts(each)[0].unlink()
    damaged = loaded.parts(published[5])[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])

    results = loaded.load(spark, rebuild=True)

    endings = {each.key: results[each.key].ending for each in published}
    assert set(list(endings.values())[:6]) == {LoadEnding.REBUILT}
    assert set(list(endings.values())[6:]) == {LoadEnding.UNCHANGED}
    assert loaded.files() == files
    assert list(loaded.ledger.pointers.load_records()) == records


def test_what_is_good_again_is_published_without_being_written_again(
    spark: SparkSession, loaded: Warehouse
) -> None:
    """R-WH-2: hidden, and then accepted as it was, a run has its artifact there already."""
    [first] = [each for each in loaded.published() if each.key == KEY]
    loaded.demote(KEY, first.run_id)
    loaded.load(spark)
    os.utime(loaded.parts(first)[0], (1, 1))
    again = Verdict.accept(
        *(KEY, first.run_id),
        schema_version="1",
        record_count=5,
        validator_version="v",
        revalidation_id="good again",
    )
    loaded.ledger.judge([again])

    assert loaded.load(spark)[KEY].ending is LoadEnding.LOADED
    assert [each for each in loaded.published() if each.key == KEY] == [first]
    assert loaded.parts(first)[0].stat().st_mtime == 1


@pytest.mark.parametrize("part_bytes", [700, 64 * 1024 * 1024], ids=["split", "whole"])
def test_bytes_depend_on_the_payload_alone(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    """R-WH-2: not on blocks, batches, tasks, or whether a payload was read whole or by slices."""
    keys = [*KEYS[:3]]
    warehouse.accept(keys, warehouse.seal(keys, rows=40), rows=40)
    seen = []
    for variant, (block_bytes, maybe_large, batch, per_task) in enumerate(
        [(1 << 22, 1 << 30, 1000, 250), (1, 1 << 30, 1, 1), (5000, 0, 2, 2)]
    ):
        monkeypatch.setattr(orders, "_MAYBE_LARGE", maybe_large)
        monkeypatch.setattr(orders, "_PER_TASK", per_task)
        monkeypatch.setattr(loading, "_BATCH", batch)
        folder = warehouse.folder / str(variant)
        plan = warehouse.loader(lambda: spark).plan(Selection(), rebuild=True)
        work = Loading(
            warehouse.ledger.pointers,
            {("demo", query.name): query for query in demo_queries().values()},
            spark,
            RawStore.open(warehouse.raw_url),
            ArtifactStore.open(folder),
            plan,
            part_bytes=part_bytes,
            block_bytes=block_bytes,
        )
        results: list[Loaded] = list(chain.from_iterable(work.results()))
        assert _endings(results) == {LoadEnding.LOADED if variant == 0 else LoadEnding.REBUILT}
        files = {
            str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))
        }
        assert (len(files) > 3 * 10) is (part_bytes == 700)
        seen.append(files)
    assert seen[0] == seen[1] == seen[2]
    rows = [pq.read_table(folder / path, partitioning=None).num_rows for path in seen[0]]
    assert sum(rows) == 120


@pytest.mark.parametrize("moment", Moment)
def test_a_killed_worker_does_no_harm(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    """R-WH-4: Spark repeats the task, and the result is that of a load in which no worker died."""
    keys = demo_keys(customers=3, days=8)  # several in each task
    warehouse.accept(keys, warehouse.seal(keys))
    marker = warehouse.folder / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(loading, "Stager", partial(KilledStager, moment=moment, marker=str(marker)))
        results = warehouse.load(spark)

    assert marker.exists()
    assert _endings(results.values()) == {LoadEnding.LOADED}
    files = warehouse.files()
    shutil.rmtree(warehouse.url)
    assert _endings(warehouse.load(spark, rebuild=True).values()) == {LoadEnding.REBUILT}
    assert warehouse.files() == files
    warehouse.check_intact()


def test_a_run_that_kills_its_worker_or_breaks_our_code_fails_alone(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    """R-VER-3, for loads: the one that cannot be staged is found, and its neighbours are published."""
    keys = [replace(each, customer_id=f"c{each.customer_id}") for each in demo_keys(customers=3, days=4)]
    bad = [replace(KEY, customer_id="breaks"), replace(KEY, customer_id="kills")]
    warehouse.accept([*keys, *bad], warehouse.seal([*keys, *bad]))
    loader = warehouse.loader(lambda: spark)
    loads = Loading(
        warehouse.ledger.pointers,
        {("demo", name): query for name, query in demo_queries().items()},
        spark,
        DeadlyRaw.open(warehouse.raw_url),
        ArtifactStore.open(warehouse.url),
        loader.plan(Selection()),
    )
    results = {each.key: each for each in chain.from_iterable(loads.results())}

    assert _endings(results[each] for each in keys) == {LoadEnding.LOADED}
    assert _endings(results[each] for each in bad) == {LoadEnding.FAILED}
    assert "ZeroDivisionError: nobody foresaw this" in str(results[bad[0]].reason)
    assert "Spark gave up: " in str(results[bad[1]].reason)
    assert results[bad[1]].error_class is ErrorClass.TRANSIENT


def test_a_load_that_is_stopped_keeps_what_it_published_and_the_next_does_the_rest(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-WH-4."""
    monkeypatch.setattr(loading, "_BATCH", 1)
    warehouse.accept(KEYS, warehouse.seal(KEYS))
    loader = warehouse.loader(lambda: spark)
    batches = loader.run(loader.plan(Selection()))
    first = next(batches)
    batches.close()

    assert len(warehouse.published()) >= len(first)
    assert len(warehouse.published()) < len(KEYS)
    warehouse.load(spark)
    assert len(warehouse.published()) == len(KEYS)
    warehouse.check_intact()
