"""Faults of the demo source strike where they are told to, and nowhere else."""

from __future__ import annotations

import json
import threading
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from sealbook.errors import ConfigError, Permanent, QuotaExceeded, QuotaScope, Transient
from sealbook.extract.source import Source, load_source
from sealbook.extract.sources.demo import DemoOptions, DemoSource
from sealbook.extract.sources.demo_faults import Slow
from sealbook.model import PartitionKey
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query

DAY = date(2026, 1, 1)
CONTRACT = Contract("campaign_daily", "1", (Column("campaign_id", ColumnType.BIGINT),))
QUERY = Query("demo", "campaign_daily", "SELECT", "1", {"1": CONTRACT})
KEY = PartitionKey("demo", "1000000001", "campaign_daily", DAY)
OTHER = PartitionKey("demo", "1000000002", "campaign_daily", DAY)


def source(*faults: dict[str, Any], rows: int = 20) -> Source:
    return load_source("demo", {"rows": rows, "faults": list(faults)})


def lines(made: Source, key: PartitionKey = KEY) -> list[bytes]:
    return [line for line in made.fetch(key, QUERY) if isinstance(line, bytes)]


GOOD = lines(source())


def changed(found: list[bytes]) -> list[int]:
    """Return the numbers, from 1, of the lines that are not the good ones."""
    return [number for number, (line, good) in enumerate(zip(found, GOOD, strict=True), 1) if line != good]


def test_malformed_lines_are_not_json_and_their_neighbours_are_untouched() -> None:
    found = lines(source({"kind": "malformed", "lines": [3, 20]}))
    assert changed(found) == [3, 20]
    for number in (3, 20):
        with pytest.raises(json.JSONDecodeError):
            json.loads(found[number - 1])


def test_a_missing_column_is_gone_from_every_line_or_from_those_named() -> None:
    column = "metrics_cost_micros"
    everywhere = lines(source({"kind": "missing_column", "column": column}))
    assert all(column not in json.loads(line) for line in everywhere)
    once = lines(source({"kind": "missing_column", "column": column, "lines": [5]}))
    assert changed(once) == [5]
    assert json.loads(GOOD[4]).keys() - json.loads(once[4]).keys() == {column}


def test_a_column_that_cannot_be_missing_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="metrics_clik"):
        lines(source({"kind": "missing_column", "column": "metrics_clik"}))


def test_a_duplicate_repeats_the_line_before_it() -> None:
    found = lines(source({"kind": "duplicate_key", "lines": [7]}))
    assert changed(found) == [7]
    assert found[6] == GOOD[5]


def test_a_wrong_date_is_the_day_before() -> None:
    found = lines(source({"kind": "wrong_date", "lines": [2]}))
    assert changed(found) == [2]
    assert json.loads(found[1]) == json.loads(GOOD[1]) | {"segments_date": "2025-12-31"}


def test_a_short_partition_is_the_beginning_of_the_whole_one() -> None:
    assert lines(source({"kind": "short", "keep": 0.25})) == GOOD[:5]


def test_several_faults_add_up() -> None:
    found = lines(source({"kind": "short", "keep": 0.5}, {"kind": "malformed", "lines": [10]}))
    assert found[:9] == GOOD[:9]
    assert found[9] != GOOD[9]
    assert len(found) == 10


@pytest.mark.parametrize("after_rows", [0, 7])
@pytest.mark.parametrize(
    ("kind", "error"), [("transient", Transient), ("quota", QuotaExceeded), ("permanent", Permanent)]
)
def test_an_error_comes_after_the_rows_it_was_told_to_let_through(
    kind: str, error: type[Exception], after_rows: int
) -> None:
    stream = source({"kind": kind, "after_rows": after_rows}).fetch(KEY, QUERY)
    assert [next(stream) for _ in range(after_rows)] == GOOD[:after_rows]
    with pytest.raises(error, match="demo/1000000001/campaign_daily/2026-01-01") as caught:
        next(stream)
    assert type(caught.value) is error


@pytest.mark.parametrize("scope", QuotaScope)
def test_a_quota_error_carries_the_wait_and_the_scope_that_were_asked_for(scope: QuotaScope) -> None:
    with pytest.raises(QuotaExceeded) as caught:
        lines(source({"kind": "quota", "retry_after": 30, "scope": scope.value}))
    assert (caught.value.retry_after, caught.value.scope) == (30.0, scope)


@pytest.mark.parametrize("kind", ["transient", "quota"])
def test_a_failure_with_a_number_of_tries_passes_after_them_for_each_key(kind: str) -> None:
    made = source({"kind": kind, "tries": 2})
    for key in (KEY, OTHER):
        for _ in range(2):
            with pytest.raises(Transient):
                lines(made, key)
        assert lines(made, key)
    assert lines(made) == GOOD


def test_any_fault_can_let_fetches_pass_before_and_after_it_strikes() -> None:
    made = source({"kind": "malformed", "skips": 1, "tries": 2})
    assert [changed(lines(made)) for _ in range(4)] == [[], [1], [1], []]


def test_fetches_are_counted_over_processes_in_a_folder(tmp_path: Path) -> None:
    options = {
        "rows": 20,
        "faults": [{"kind": "short", "keep": 0.5, "tries": 1}],
        "memory": str(tmp_path / "m"),
    }
    counts = [len(lines(load_source("demo", options), key)) for key in (KEY, KEY, OTHER, OTHER)]
    assert counts == [10, 20, 10, 20]


def test_threads_that_try_at_once_meet_exactly_the_failures_told() -> None:
    made = source({"kind": "transient", "tries": 50}, rows=1)
    failures = []

    def attempt() -> None:
        for _ in range(25):
            try:
                lines(made)
            except Transient as failure:
                failures.append(failure)

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 50


def test_a_slow_account_waits_and_others_do_not() -> None:
    waits: list[float] = []
    slow = Slow(customers=("1000000001",), seconds=5.0)
    made = DemoSource(DemoOptions(rows=1, latency_seconds=0.5, faults=(slow,)), sleep=waits.append)
    list(made.fetch(KEY, QUERY))
    list(made.fetch(OTHER, QUERY))
    assert waits == [5.5, 0.5]


@pytest.mark.parametrize(
    "place",
    [{"customers": ["1000000001"]}, {"queries": ["campaign_daily"]}, {"dates": ["2026-01-01"]}],
    ids=str,
)
def test_a_fault_is_kept_to_its_customers_queries_and_dates(place: dict[str, list[str]]) -> None:
    made = source({"kind": "permanent", **place})
    elsewhere = PartitionKey("demo", "1000000002", "ad_group_daily", date(2026, 1, 2))
    assert lines(made, elsewhere)
    with pytest.raises(Permanent):
        lines(made)


def test_a_share_strikes_that_part_of_the_keys_always_the_same_and_not_the_same_for_each_kind() -> None:
    keys = [
        PartitionKey(
            "demo", str(1_000_000_000 + number % 50), "campaign_daily", DAY + timedelta(number // 50)
        )
        for number in range(2000)
    ]

    def struck(kind: str, share: float) -> set[PartitionKey]:
        made = source({"kind": kind, "share": share}, rows=2)
        plain = source(rows=2)
        return {key for key in keys if lines(made, key) != lines(plain, key)}

    tenth = struck("malformed", 0.1)
    assert 150 < len(tenth) < 250
    assert struck("malformed", 0.1) == tenth
    assert tenth < struck("malformed", 0.2)
    assert struck("wrong_date", 0.1) != tenth
    assert struck("malformed", 0.0) == set()
    assert struck("malformed", 1.0) == set(keys)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"rowz": 1}, "rowz"),
        ({"rows": -1}, "rows"),
        ({"rows": "many"}, "rows"),
        ({"faults": [{"kind": "malformed"}, {"kind": "explode"}]}, r"faults\[1\].kind"),
        ({"faults": [{"kind": "malformed", "lines": [0]}]}, r"faults\[0\].lines\[0\]"),
        ({"faults": [{"kind": "short", "lines": [1]}]}, r"faults\[0\].lines: there is no such field"),
        ({"faults": [{"kind": "transient", "share": 2}]}, r"faults\[0\].share"),
        ({"faults": [{"kind": "transient", "dates": ["2026-02-30"]}]}, r"faults\[0\].dates\[0\]"),
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_with_its_path(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError, match=path) as caught:
        load_source("demo", options)
    assert caught.value.remedy is not None
    assert "latency_seconds" in caught.value.remedy
