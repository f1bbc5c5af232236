"""Loading into a warehouse that does not take everything, or takes nothing: it says why, and recovers."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.errors import NotFound, Unwritable
from sealbook.ledger import open_ledger
from sealbook.load import loading, orders
from sealbook.load.loader import Loader
from sealbook.load.results import Loaded, LoadEnding
from sealbook.load.staging import Stager, StagingResult, StagingTask
from sealbook.model.selection import Selection
from tests.support.extraction import demo_keys, demo_queries
from tests.support.loading import Warehouse, no_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

KEYS = demo_keys(customers=3, days=4)
BAD = [key for key in KEYS if key.customer_id == "c1"]
GOOD = [key for key in KEYS if key.customer_id != "c1"]


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """An empty warehouse, in which one run of each partition is accepted."""
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        made = Warehouse(tmp_path, ledger)
        made.accept(KEYS, made.seal(KEYS))
        yield made


def check_recovered(warehouse: Warehouse, spark: SparkSession) -> None:
    """See that the next load does the rest, and that nothing is left to be cleaned up by hand."""
    results = warehouse.load(spark)
    assert {result.ending for result in results.values()} <= {LoadEnding.LOADED}
    assert sorted(warehouse.rows()) == sorted(KEYS)
    warehouse.check_intact()
    files = {path for path in Path(warehouse.url).rglob("*") if path.is_file()}
    assert files == {file for each in warehouse.published() for file in warehouse.parts(each)}


def test_what_cannot_be_written_fails_with_errno_and_path_and_the_others_go_on(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    """A customer's directory cannot be made: a file is in its place."""
    blocked = Path(warehouse.url) / "demo/campaign_daily/schema_version=1/customer_id=c1"
    blocked.parent.mkdir(parents=True)
    blocked.touch()

    results = warehouse.load(spark)

    assert {key for key, result in results.items() if result.ending is LoadEnding.FAILED} == set(BAD)
    for key in BAD:
        assert f"{blocked}/logical_date={key.logical_date}" in str(results[key].reason)
        assert "[Errno " in str(results[key].reason)
    assert sorted(warehouse.rows()) == GOOD
    blocked.unlink()
    check_recovered(warehouse, spark)


@dataclass(frozen=True)
class LimitedStager(Stager):
    """Works in a process that may not write files of more bytes than this."""

    most: int = 0

    def __call__(self, task: StagingTask) -> list[StagingResult]:
        """Stage under the limit."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.most, before[1]))
        try:
            return super().__call__(task)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_does_not_fit_fails_and_the_others_go_on(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system itself refuses files beyond a size, as a quota does: a write fails half-way."""
    large = demo_keys(customers=1, days=2, query_name="campaign_daily")
    warehouse.accept(large, warehouse.seal(large, rows=2000, restatement=1), rows=2000)
    with monkeypatch.context() as patch:
        patch.setattr(loading, "Stager", partial(LimitedStager, most=8192))
        results = warehouse.load(spark)

    assert {key for key, result in results.items() if result.ending is LoadEnding.FAILED} == set(large)
    assert all("[Errno 27] File too large" in str(results[key].reason) for key in large)
    assert sorted(warehouse.rows()) == [key for key in KEYS if key not in large]
    check_recovered(warehouse, spark)


def test_a_place_that_takes_nothing_ends_the_load_early_with_its_cause(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task has one partition: what the first found to be so is not found for each."""
    monkeypatch.setattr(orders, "_PER_TASK", 1)
    drafts = Path(warehouse.url) / "_drafts"
    drafts.parent.mkdir(parents=True)
    drafts.touch()
    loader = warehouse.loader(lambda: spark)
    failed: list[Loaded] = []
    results = chain.from_iterable(loader.run(loader.plan(Selection())))

    with pytest.raises(Unwritable, match=rf"takes nothing: .*{drafts}.*\[Errno ") as error:
        failed.extend(results)

    assert error.value.remedy is not None
    assert 0 < len(failed) < len(KEYS)
    assert warehouse.published() == []
    drafts.unlink()
    check_recovered(warehouse, spark)


def test_a_warehouse_that_is_not_there_is_told_before_spark_starts(warehouse: Warehouse, s3_url: str) -> None:
    missing = s3_url.replace("bucket", "no-such-bucket")
    loader = Loader(
        warehouse.ledger.pointers,
        demo_queries().values(),
        no_spark,
        raw_url=warehouse.raw_url,
        warehouse_url=missing,
    )
    with pytest.raises(NotFound, match=missing):
        list(loader.run(loader.plan(Selection())))
