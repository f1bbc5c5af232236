"""R-WH-2, R-WH-7: what is published never changes a byte, whoever stages or removes or loads beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from sqlalchemy import update

from sealbook.errors import NotFound
from sealbook.ledger import open_ledger
from sealbook.ledger.db.queries import at_key
from sealbook.ledger.pointers.tables import load_record
from sealbook.load.loader import Loader
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import PartitionKey
from sealbook.model.artifacts import FIRST_FORMAT
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Query
from sealbook.model.selection import Selection
from sealbook.warehouse.cleanup import Cleanup
from sealbook.warehouse.encoding import to_parquet
from sealbook.warehouse.store import ArtifactStore
from sealbook.warehouse.verification import Verification
from tests.support.extraction import demo_keys, demo_queries
from tests.support.loading import QUERY, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

KEYS = demo_keys(customers=2, days=2)
KEY = KEYS[0]
AT_ONCE = timedelta(0)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """An empty warehouse, in which one run of each partition is accepted."""
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        made = Warehouse(tmp_path, ledger)
        made.accept(KEYS, made.seal(KEYS))
        yield made


@pytest.fixture
def loaded(spark: SparkSession, warehouse: Warehouse) -> Warehouse:
    """The same, published."""
    warehouse.load(spark)
    return warehouse


def edited_query() -> Query:
    """Return the query with a contract in which a column was edited, under the same schema_version."""
    query = demo_queries()[QUERY]
    [contract] = query.contracts.values()
    columns = tuple(
        replace(column, type=ColumnType.DOUBLE) if column.name == "metrics_clicks" else column
        for column in contract.columns
    )
    assert columns != contract.columns
    return replace(query, contracts={"1": replace(contract, columns=columns)})


def loader(warehouse: Warehouse, spark: SparkSession, *, edited: bool = False) -> Loader:
    """Return a loader by the contract, or by the one that was edited."""
    query = edited_query() if edited else demo_queries()[QUERY]
    return Loader(
        warehouse.ledger.pointers,
        [query],
        lambda: spark,
        raw_url=warehouse.raw_url,
        warehouse_url=warehouse.url,
    )


def run(each: Loader, *, rebuild: bool = False) -> dict[PartitionKey, Loaded]:
    """Do a whole load."""
    return by_key(each, each.plan(Selection(), rebuild=rebuild))


def by_key(each: Loader, plan: object) -> dict[PartitionKey, Loaded]:
    """Carry out a plan."""
    results = chain.from_iterable(each.run(plan))  # type: ignore[arg-type]
    return {result.key: result for result in results}


def cleanup(warehouse: Warehouse) -> Cleanup:
    """Return a clean-up that retains nothing."""
    return Cleanup(warehouse.ledger.pointers, ArtifactStore.open(warehouse.url), AT_ONCE)


def mismatches(warehouse: Warehouse) -> list[object]:
    """Return what verification finds."""
    verification = Verification(warehouse.ledger.pointers, ArtifactStore.open(warehouse.url))
    return [each for verified in verification.artifacts(Selection()) for each in verified.mismatches]


def test_two_loads_that_planned_together(spark: SparkSession, warehouse: Warehouse) -> None:
    """The second, by an edited contract, publishes nothing, and leaves what the first published as it was."""
    first, second = loader(warehouse, spark), loader(warehouse, spark, edited=True)
    plans = first.plan(Selection()), second.plan(Selection())
    by_key(first, plans[0])
    published, files, rows = warehouse.published(), warehouse.files(), warehouse.rows()

    results = by_key(second, plans[1])

    assert {result.ending for result in results.values()} == {LoadEnding.FAILED}
    assert "was loaded before with digest" in str(results[KEY].reason)
    assert warehouse.published() == published
    assert warehouse.rows() == rows
    assert files.items() <= warehouse.files().items()
    warehouse.check_intact()
    removed = list(cleanup(warehouse).remove())
    assert [(each.key, each.orphan) for each in removed] == [(key, True) for key in KEYS]
    assert warehouse.files() == files


def test_a_rebuild_under_an_edited_contract_leaves_nothing_for_readers(
    spark: SparkSession, loaded: Warehouse
) -> None:
    """They are told that the artifact is gone, until it is staged by the contract that it was loaded by."""
    files, records = loaded.files(), list(loaded.ledger.pointers.load_records())
    [path] = loaded.parts(loaded.published()[0])
    path.unlink()

    results = run(loader(loaded, spark, edited=True), rebuild=True)

    assert {key: result.ending for key, result in results.items()} == {
        KEY: LoadEnding.FAILED,
        **dict.fromkeys(KEYS[1:], LoadEnding.UNCHANGED),
    }
    with pytest.raises(NotFound, match="is gone"):
        loaded.rows()
    assert run(loader(loaded, spark), rebuild=True)[KEY].ending is LoadEnding.REBUILT
    list(cleanup(loaded).remove())
    assert loaded.files() == files
    assert list(loaded.ledger.pointers.load_records()) == records


@pytest.mark.parametrize("step", ["condemned", "half deleted", "deleted"])
def test_a_load_takes_over_from_a_clean_up_that_died(
    spark: SparkSession, loaded: Warehouse, step: str
) -> None:
    """Whatever it had deleted, the run is published at once, with the same bytes and the same record."""
    records = list(loaded.ledger.pointers.load_records())
    [first] = [each for each in loaded.published() if each.key == KEY]
    [data] = [file.read_bytes() for file in loaded.parts(first)]
    rows = loaded.rows()[KEY]
    loaded.accept([KEY], loaded.seal([KEY], restatement=2))
    loaded.load(spark)
    store, pointers = ArtifactStore.open(loaded.url), loaded.ledger.pointers
    [doomed] = pointers.condemn(pointers.removable(AT_ONCE), AT_ONCE)
    if step != "condemned":
        store.delete(store.sizes(first.location))
    if step == "deleted":
        pointers.forget([doomed])
    loaded.ledger.rollback(KEY, first.run_id, actor="a", reason="r")

    results = loaded.load(spark)

    assert {key: result.ending for key, result in results.items()} in (
        {KEY: LoadEnding.REPLACED},
        {KEY: LoadEnding.LOADED},
    )
    store.delete(cleanup(loaded)._files_of(doomed))  # it was only slow
    pointers.forget([doomed])
    [again] = [each for each in loaded.published() if each.key == KEY]
    assert again.copy == 1
    assert [file.read_bytes() for file in loaded.parts(again)] == [data]
    assert loaded.rows()[KEY] == rows
    assert [each for each in pointers.load_records() if each in records] == records
    assert mismatches(loaded) == []


def test_a_removed_run_is_loaded_again_only_with_the_same_bytes(
    spark: SparkSession, loaded: Warehouse
) -> None:
    """Removed, and staged again by an edited contract, it is refused; by its own it is published."""
    [first] = [each for each in loaded.published() if each.key == KEY]
    loaded.accept([KEY], loaded.seal([KEY], restatement=2))
    loaded.load(spark)
    list(cleanup(loaded).remove())
    loaded.ledger.rollback(KEY, first.run_id, actor="a", reason="r")

    results = run(loader(loaded, spark, edited=True))

    assert results[KEY].ending is LoadEnding.FAILED
    assert f"was loaded before with {first.digest}" in str(results[KEY].reason)
    assert loaded.load(spark)[KEY].ending in (LoadEnding.REPLACED, LoadEnding.LOADED)
    assert [each.digest for each in loaded.published() if each.key == KEY] == [first.digest]


@pytest.fixture
def of_first_format(loaded: Warehouse) -> Warehouse:
    """A warehouse as earlier versions left it: names without digests, and footers that say nothing."""
    for each in loaded.published():
        [file] = loaded.parts(each)
        data = to_parquet(pq.read_table(file, partitioning=None).combine_chunks())
        digest = sha256(data).hexdigest()
        file.unlink()
        (file.parent / "part-00000.parquet").write_bytes(data)
        record = update(load_record).where(*at_key(load_record, each.key))
        earlier = record.values(format=FIRST_FORMAT, digest=digest, bytes=len(data))
        loaded.ledger._database.write(lambda c, s=earlier: c.execute(s))  # type: ignore[misc]
    return loaded


def test_what_was_loaded_before_is_read_and_rebuilt(spark: SparkSession, of_first_format: Warehouse) -> None:
    """Staged anew it is byte for byte as it was, its record stays, and its new name has a digest."""
    loaded = of_first_format
    records, rows = list(loaded.ledger.pointers.load_records()), loaded.rows()
    files = loaded.files()
    assert mismatches(loaded) == []
    assert {result.ending for result in loaded.load(spark, rebuild=True).values()} == {LoadEnding.UNCHANGED}
    [lost] = loaded.parts(loaded.published()[0])
    lost.unlink()
    assert len(mismatches(loaded)) == 1

    results = loaded.load(spark, rebuild=True)

    assert results[KEY].ending is LoadEnding.REBUILT
    [again, *others] = loaded.published()
    assert (again.format, again.copy) == (FIRST_FORMAT, 1)
    assert again.digest in loaded.parts(again)[0].name
    assert {each.copy for each in others} == {0}
    assert sorted(loaded.files().values()) == sorted(files.values())
    assert list(loaded.ledger.pointers.load_records()) == records
    assert loaded.rows() == rows
    assert mismatches(loaded) == []
    assert list(cleanup(loaded).remove()) == []
