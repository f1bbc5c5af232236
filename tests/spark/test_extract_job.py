"""Extraction on Spark: complete, isolated, resumable, and stopped without harm."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.extract.job import extract, results_frame
from sealbook.extract.ranges import singles
from sealbook.extract.results import Ending
from sealbook.model.failures import ErrorClass
from sealbook.raw import RawStore
from tests.support.extraction import demo_extractor, demo_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


def test_every_key_is_extracted_once_and_the_results_are_a_data_frame(
    spark: SparkSession, tmp_path: Path
) -> None:
    keys = demo_keys(customers=7, days=40)
    extractor = demo_extractor(tmp_path, faults=[{"kind": "quota", "customers": ["c3"]}])

    results = list(chain.from_iterable(extract(spark, extractor, singles(keys))))

    assert sorted(result.key for result in results) == sorted(keys)
    frame = results_frame(spark, results)
    counted = frame.groupBy("ending", "error_class").count().collect()
    counts = {(row.ending, row.error_class): row["count"] for row in counted}
    assert counts == {("sealed", None): 240, ("failed", "quota"): 40}
    sealed = {each.key for each in RawStore.open(extractor.raw_url).sealed()}
    assert sealed == {key for key in keys if key.customer_id != "c3"}


def test_results_come_while_the_job_runs_and_a_stopped_job_is_finished_by_a_rerun(
    spark: SparkSession, tmp_path: Path
) -> None:
    keys = demo_keys(customers=5, days=100)
    extractor = demo_extractor(tmp_path)
    store = RawStore.open(extractor.raw_url)
    with closing(extract(spark, extractor, singles(keys), keys_per_task=50)) as batches:
        first = next(batches)
    sealed_by_then = set(store.sealed())
    assert {result.key for result in first} <= {each.key for each in sealed_by_then}
    assert len(sealed_by_then) < len(keys)

    again = list(chain.from_iterable(extract(spark, extractor, singles(keys))))

    endings = Counter(result.ending for result in again)
    assert endings[Ending.SKIPPED] >= len(first)
    assert endings[Ending.SKIPPED] + endings[Ending.SEALED] == len(keys)
    for key, run_id, _ in store.sealed():
        assert len(store.read(key, run_id).payload()) == store.metadata(key, run_id).payload_bytes


def test_a_source_that_cannot_be_made_fails_its_partitions_not_the_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    extractor = demo_extractor(tmp_path, no_such_option=1)

    [result] = chain.from_iterable(extract(spark, extractor, singles(demo_keys(customers=1, days=1))))

    assert (result.ending, result.error_class) == (Ending.FAILED, ErrorClass.PERMANENT)
    assert "no_such_option" in str(result.error_message)


def test_no_keys_is_no_work(spark: SparkSession, tmp_path: Path) -> None:
    assert list(extract(spark, demo_extractor(tmp_path), [])) == []
