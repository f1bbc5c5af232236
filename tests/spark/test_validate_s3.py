"""The validator with raw partitions on S3: the same verdicts, and a storage that fails is no verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.ledger import Ledger, open_ledger
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from sealbook.validate.bins import Binning
from sealbook.validate.results import Judged, NotJudged, Result
from tests.support.s3 import Fault, S3Server, seal_rows
from tests.support.validation import CONTRACT, RUN, key, new_validator, query, row, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

SLICED = Binning(2, sliced_above=1_000, slice_bytes=700)


@pytest.fixture
def store(s3_url: str, s3_server: S3Server) -> RawStore:
    """An empty store that workers can reach too, whatever environment their session was started in."""
    options = {
        "endpoint": s3_server.endpoint,
        "access_key_id": "test",
        "secret_access_key": "test",
        "region": "us-east-1",
    }
    store = RawStore.open(s3_url, options)
    seal_rows(store, rows(20), key("long"))
    seal_rows(store, rows(2), key("short"))
    seal_rows(store, [*rows(9), row(1)], key("repeated"))
    return store


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        yield ledger


def validate(spark: SparkSession, store: RawStore, ledger: Ledger, binning: Binning) -> list[Result]:
    contract = query(replace(CONTRACT, schema_version="v1"))
    validator = new_validator(ledger, store, [contract], lambda: spark, binning)
    return list(chain.from_iterable(validator.run(validator.plan(Selection()))))


@pytest.mark.parametrize("binning", [Binning(2), SLICED], ids=["whole", "sliced"])
def test_runs_on_s3_are_judged(
    spark: SparkSession, store: RawStore, ledger: Ledger, binning: Binning
) -> None:
    results = validate(spark, store, ledger, binning)

    found = {}
    for result in results:
        assert isinstance(result, Judged)
        failed = {check.name: check.lines for check in result.verdict.checks if not check.passed}
        found[result.verdict.key] = (result.verdict.record_count, failed)
    assert found == {
        key("long"): (20, {}),
        key("short"): (2, {}),
        key("repeated"): (None, {"primary_key": (10,)}),
    }


def test_a_storage_that_fails_is_no_verdict(
    spark: SparkSession, store: RawStore, ledger: Ledger, s3_server: S3Server
) -> None:
    """R-VER-4: no attempt is counted; once the storage is back, everything is judged."""
    s3_server.expect(None)
    planned = new_validator(ledger, store, [], lambda: spark).plan(Selection())
    listing = s3_server.requests
    assert len(planned.candidates) == 3
    s3_server.expect(Fault(listing + 1, applied=False, times=10**6, status="403 Forbidden"))
    results = validate(spark, store, ledger, Binning(2))

    assert [type(result) for result in results] == [NotJudged] * 3
    assert not list(ledger.states())

    s3_server.expect(None)
    results = validate(spark, store, ledger, Binning(2))
    assert [type(result) for result in results] == [Judged] * 3
    assert len(ledger.attempts(key("long"))) == 1
    assert ledger.attempts(key("long"))[0].run_id == RUN
