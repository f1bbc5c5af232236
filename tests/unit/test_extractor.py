"""Extraction in a worker: fetch, write, seal; failures stay with their partition."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from sealbook.clock import utc_now
from sealbook.extract.extractor import Extractor
from sealbook.extract.ranges import singles
from sealbook.extract.results import Ending, Extracted
from sealbook.extract.sources.demo import DemoSource
from sealbook.model import PartitionKey
from sealbook.model.contract import Query
from sealbook.model.failures import ErrorClass
from sealbook.model.universe import Account, EarlierZone
from sealbook.model.versions import Term
from sealbook.raw import RawStore
from tests.support.extraction import demo_extractor, demo_keys, demo_queries

KEYS = demo_keys(customers=3, days=4)


def test_every_partition_is_sealed_with_what_its_query_says(tmp_path: Path) -> None:
    extractor = demo_extractor(tmp_path)

    results = extractor(singles(KEYS))

    assert [result.key for result in results] == KEYS
    assert {result.ending for result in results} == {Ending.SEALED}
    store, query = RawStore.open(extractor.raw_url), demo_queries()["campaign_daily"]
    for result in results:
        seal = store.metadata(result.key, extractor.run_id)
        assert (seal.record_count, seal.payload_bytes) == (result.record_count, result.payload_bytes)
        assert (seal.schema_version, seal.query_hash) == (query.schema_version, query.hash)
        assert len(list(store.read(result.key, extractor.run_id).lines())) == 5


def test_the_seal_says_when_the_day_was_where_the_account_is(tmp_path: Path) -> None:
    """Days keep the zone that they had; what is not over is provisional."""
    changed = KEYS[2].logical_date
    zones = (EarlierZone(changed, ZoneInfo("Europe/Berlin")),)
    account = Account("c0", ZoneInfo("Asia/Tokyo"), earlier=zones)
    extractor = replace(demo_extractor(tmp_path), accounts={"c0": account})
    ahead = replace(KEYS[0], logical_date=utc_now().date() + timedelta(days=2))

    extractor(singles([*KEYS, ahead]))

    store = RawStore.open(extractor.raw_url)
    for key in (*KEYS, ahead):
        day = store.metadata(key, extractor.run_id).day
        assert day is not None
        zone = (
            "UTC"
            if key.customer_id != "c0"
            else "Europe/Berlin"
            if key.logical_date < changed
            else "Asia/Tokyo"
        )
        assert (day.time_zone, day.provisional) == (zone, key is ahead)
        local = day.begins_at.astimezone(ZoneInfo(zone)), day.ends_at.astimezone(ZoneInfo(zone))
        assert [each.time() for each in local] == [time(), time()]
        assert [each.date() for each in local] == [key.logical_date, key.logical_date + timedelta(days=1)]
    fields = store.metadata(KEYS[0], extractor.run_id).extra
    assert list(fields) == ["time_zone", "day_begins_at", "day_ends_at", "provisional"]


def test_each_day_is_fetched_by_the_version_that_holds_then(tmp_path: Path) -> None:
    """R-VER-7: fetching days across a change gives each its own version, with the text of that version."""
    query = demo_queries()["campaign_daily"]
    contracts = {version: replace(query.contracts["1"], schema_version=version) for version in "12"}
    terms = {"1": Term(text="old"), "2": Term(KEYS[2].logical_date)}
    query = replace(query, contracts=contracts, schema_version="2", terms=terms)
    extractor = replace(demo_extractor(tmp_path), queries={"campaign_daily": query})

    seals = [result.seal for result in extractor(singles(KEYS[:4]))]

    told = [(seal.schema_version, seal.query_hash) for seal in seals if seal is not None]
    assert told == [("1", replace(query, text="old").hash)] * 2 + [("2", query.hash)] * 2


def test_the_same_run_again_skips_what_it_sealed(tmp_path: Path) -> None:
    """R-RAW-4: a rerun finishes what is left and touches nothing that is sealed."""
    extractor = demo_extractor(tmp_path)
    first = extractor(singles(KEYS[:5]))

    again = extractor(singles(KEYS))

    assert [result.ending for result in again] == [Ending.SKIPPED] * 5 + [Ending.SEALED] * 7
    assert [_counts(result) for result in again[:5]] == [_counts(result) for result in first]


def test_the_same_run_again_rewrites_its_own_unsealed_leftover(tmp_path: Path) -> None:
    """R-RAW-4."""
    extractor = demo_extractor(tmp_path)
    store = RawStore.open(extractor.raw_url)
    store.write(KEYS[0], extractor.run_id, [b'{"half": "done"}'])

    [result] = extractor(singles(KEYS[:1]))

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

    results = extractor(singles(KEYS))

    failed = [result for result in results if result.ending is Ending.FAILED]
    assert {result.key.customer_id for result in failed} == {"c1"}
    assert len(failed) == 4
    assert all(result.error_class is error_class and result.error_message for result in failed)
    assert not any(RawStore.open(extractor.raw_url).runs(result.key) for result in failed)


@pytest.mark.parametrize(
    ("scope", "asked", "waiting"),
    [("account", ["c0", "c1", "c2"], {"c1"}), ("source", ["c0", "c1"], {"c1", "c2"})],
)
def test_a_quota_that_is_used_up_stops_requests_of_its_scope_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, asked: list[str], waiting: set[str]
) -> None:
    """R-CTL-7: nobody asks in vain for what the source said it will not give for now."""
    fault = {"kind": "quota", "customers": ["c1"], "retry_after": 3600, "scope": scope}
    fetched = list[str]()
    fetch = DemoSource.fetch

    def counted(self: DemoSource, key: PartitionKey, query: Query) -> Iterator[bytes]:
        fetched.append(key.customer_id)
        return fetch(self, key, query)

    monkeypatch.setattr(DemoSource, "fetch", counted)
    extractor = demo_extractor(tmp_path, faults=[fault])

    results = [result for days in singles(KEYS) for result in extractor.extract(days)]

    assert sorted(set(fetched)) == asked
    assert fetched.count("c1") == 1
    failed = [result for result in results if result.ending is Ending.FAILED]
    assert {result.key.customer_id for result in failed} == waiting
    assert len(failed) == 4 * len(waiting)
    assert {result.quota_scope for result in failed} == {scope}
    assert all(3500 < (result.retry_after or 0) <= 3600 for result in failed)


def test_a_failure_that_passes_is_retried_within_the_fetch(tmp_path: Path) -> None:
    extractor = demo_extractor(tmp_path, faults=[{"kind": "transient", "tries": 2}])

    assert {result.ending for result in extractor(singles(KEYS))} == {Ending.SEALED}


def test_an_error_of_a_foreign_source_is_the_partition_s_result(tmp_path: Path) -> None:
    class Broken(Extractor):
        @property
        def _source(self) -> object:  # type: ignore[override]
            raise ZeroDivisionError

    template = demo_extractor(tmp_path)
    broken = Broken(**{name: getattr(template, name) for name in template.__dataclass_fields__})

    [result] = broken(singles(KEYS[:1]))

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
    extractor(singles(KEYS))
    assert sorted(asked) == sorted(key.customer_id for key in KEYS)

    extractor(singles(KEYS))
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
    first = extractor(singles(KEYS[:2]))
    again = extractor(singles(KEYS[:2]))
    assert asked == []
    assert [result.ending for result in (*first, *again)] == [Ending.SEALED] * 2 + [Ending.SKIPPED] * 2
    assert [_counts(result) for result in again] == [_counts(result) for result in first]
