"""Extraction in a worker: fetch, write, seal; failures stay with their partition."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from sealbook.extract.extractor import Extractor
from sealbook.extract.results import Ending, Extracted
from sealbook.model import PartitionKey
from sealbook.model.failures import ErrorClass
from sealbook.raw import RawStore
from tests.support.extraction import demo_extractor, demo_keys, demo_queries

KEYS = demo_keys(customers=3, days=4)


def test_every_partition_is_sealed_with_what_its_query_says(tmp_path: Path) -> None:
    extractor = demo_extractor(tmp_path)

    results = extractor(KEYS)

    assert [result.key for result in results] == KEYS
    assert {result.ending for result in results} == {Ending.SEALED}
    store, query = RawStore.open(extractor.raw_url), demo_queries()["campaign_daily"]
    for result in results:
        seal = store.metadata(result.key, extractor.run_id)
        assert (seal.record_count, seal.payload_bytes) == (result.record_count, result.payload_bytes)
        assert (seal.schema_version, seal.query_hash) == (query.schema_version, query.hash)
        assert len(list(store.read(result.key, extractor.run_id).lines())) == 5


def test_the_same_run_again_skips_what_it_sealed(tmp_path: Path) -> None:
    """R-RAW-4: a rerun finishes what is left and touches nothing that is sealed."""
    extractor = demo_extractor(tmp_path)
    first = extractor(KEYS[:5])

    again = extractor(KEYS)

    assert [result.ending for result in again] == [Ending.SKIPPED] * 5 + [Ending.SEALED] * 7
    assert [_counts(result) for result in again[:5]] == [_counts(result) for result in first]


def test_the_same_run_again_rewrites_its_own_unsealed_leftover(tmp_path: Path) -> None:
    """R-RAW-4."""
    extractor = demo_extractor(tmp_path)
    store = RawStore.open(extractor.raw_url)
    store.write(KEYS[0], extractor.run_id, [b'{"half": "done"}'])

    [result] = extractor(KEYS[:1])

    assert result.ending is Ending.SEALED
    assert b"half" not in store.read(KEYS[0], extractor.run_id).payload()


@pytest.mark.parametrize(
    ("kind", "error_class"),
    [
        ("transient", ErrorClass.TRANSIENT),
        ("quota", ErrorClass.QUOTA),
        ("permanent", ErrorClass.PERMANENT),
    ],
)
def test_one_account_s_failure_is_its_own_and_is_classed(
    tmp_path: Path, kind: str, error_class: ErrorClass
) -> None:
    """R-CTL-7."""
    extractor = demo_extractor(tmp_path, faults=[{"kind": kind, "customers": ["c1"]}])

    results = extractor(KEYS)

    failed = [result for result in results if result.ending is Ending.FAILED]
    assert {result.key.customer_id for result in failed} == {"c1"}
    assert len(failed) == 4
    assert all(result.error_class is error_class and result.error_message for result in failed)
    assert not any(RawStore.open(extractor.raw_url).runs(result.key) for result in failed)


def test_a_failure_that_passes_is_retried_within_the_fetch(tmp_path: Path) -> None:
    extractor = demo_extractor(tmp_path, faults=[{"kind": "transient", "tries": 2}])

    assert {result.ending for result in extractor(KEYS)} == {Ending.SEALED}


def test_an_error_of_a_foreign_source_is_the_partition_s_result(tmp_path: Path) -> None:
    class Broken(Extractor):
        @property
        def _source(self) -> object:  # type: ignore[override]
            raise ZeroDivisionError

    template = demo_extractor(tmp_path)
    broken = Broken(**{name: getattr(template, name) for name in template.__dataclass_fields__})

    [result] = broken(KEYS[:1])

    assert (result.ending, result.error_class) == (Ending.FAILED, ErrorClass.PERMANENT)
    assert result.error_message == "ZeroDivisionError"


def test_requests_wait_for_the_limit_of_their_account_but_sealed_ones_ask_for_nothing(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    class Limiter:
        def acquire(self, customer_id: str) -> None:
            asked.append(customer_id)

    extractor = demo_extractor(tmp_path, threads=1)
    extractor.__dict__["_limiter"] = Limiter()
    extractor(KEYS)
    assert sorted(asked) == sorted(key.customer_id for key in KEYS)

    extractor(KEYS)
    assert len(asked) == len(KEYS)


def test_an_extractor_goes_to_workers_without_its_connections_and_shows_no_secret(tmp_path: Path) -> None:
    extractor = replace(demo_extractor(tmp_path), options={"password": "hunter2"})

    assert "hunter2" not in repr(extractor)
    assert pickle.loads(pickle.dumps(extractor)) == extractor


def _counts(result: Extracted) -> tuple[PartitionKey, int, int]:
    return result.key, result.record_count, result.payload_bytes


def test_a_run_that_resumes_nothing_saves_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-RAW-2: two puts and nothing else; should a partition be sealed all the same, its seal says so."""
    extractor = replace(demo_extractor(tmp_path), resumes=False)
    asked: list[object] = []
    monkeypatch.setattr(RawStore, "is_sealed", lambda *key: asked.append(key))
    first = extractor(KEYS[:2])
    again = extractor(KEYS[:2])
    assert asked == []
    assert [result.ending for result in (*first, *again)] == [Ending.SEALED] * 2 + [Ending.SKIPPED] * 2
    assert [_counts(result) for result in again] == [_counts(result) for result in first]
