"""The demo source: the same rows for the same key, in the shape that its contracts describe."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from sealbook.config.catalogue import load_catalogue
from sealbook.extract.source import load_source
from sealbook.extract.sources.demo import DemoOptions, DemoSource, demo_configuration
from sealbook.model import PartitionKey
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Query

DAY = date(2026, 1, 1)
QUERIES = ("campaign_daily", "ad_group_daily", "device_daily")
PYTHON_TYPES = {
    ColumnType.BIGINT: int,
    ColumnType.DOUBLE: float,
    ColumnType.STRING: str,
    ColumnType.DATE: str,
}


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Query]:
    file = tmp_path_factory.mktemp("demo") / "demo.yaml"
    file.write_text(demo_configuration(), "utf-8")
    return dict(load_catalogue(file, "demo"))


def key(query_name: str = "campaign_daily", customer_id: str = "1000000001", day: date = DAY) -> PartitionKey:
    return PartitionKey("demo", customer_id, query_name, day)


def lines(wanted: PartitionKey, query: Query, **options: Any) -> list[bytes]:
    return [bytes(line) for line in fetch(wanted, query, **options)]


def fetch(wanted: PartitionKey, query: Query, **options: Any) -> Iterator[Any]:
    return load_source("demo", options).fetch(wanted, query)


def rows(wanted: PartitionKey, query: Query, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(wanted, query, **options)]


@pytest.mark.parametrize("query_name", QUERIES)
def test_rows_keep_the_contract_that_comes_with_the_demo(query_name: str, queries: dict[str, Query]) -> None:
    query = queries[query_name]
    contract = query.contracts[query.schema_version]
    found = rows(key(query_name), query, rows=500)
    assert len(found) == 500
    for row in found:
        assert list(row) == [column.name for column in contract.columns]
        for column in contract.columns:
            assert type(row[column.name]) is PYTHON_TYPES[column.type]
        assert contract.date_column is not None
        assert row[contract.date_column] == "2026-01-01"
        assert 0 <= row["metrics_clicks"] <= row["metrics_impressions"]
        assert row["metrics_cost_micros"] >= 0
    assert len({tuple(row[name] for name in contract.primary_key) for row in found}) == 500


@pytest.mark.parametrize("query_name", QUERIES)
def test_the_text_of_a_demo_query_asks_for_the_columns_that_the_demo_gives(
    query_name: str, queries: dict[str, Query]
) -> None:
    text = queries[query_name].text
    asked = text.removeprefix("SELECT").partition("FROM")[0].split(",")
    row = rows(key(query_name), queries[query_name], rows=1)[0]
    assert {field.strip().replace(".", "_") for field in asked} == set(row)
    assert "'{logical_date}'" in text


def test_the_rows_of_a_key_are_the_same_in_every_process_and_release(queries: dict[str, Query]) -> None:
    """A change of these digests is a change of everybody's demo data: make it on purpose."""
    script = (
        "import hashlib, sys; from datetime import date;"
        "from sealbook.extract.sources.demo_rows import demo_lines; from sealbook.model import PartitionKey;"
        "lines = demo_lines(PartitionKey.parse(sys.argv[1]), seed=0, rows=5000, restatement=0);"
        "print(hashlib.sha256(b'\\n'.join(lines)).hexdigest())"
    )
    for query_name, expected in EXPECTED_DIGESTS.items():
        wanted = key(query_name)
        here = hashlib.sha256(b"\n".join(lines(wanted, queries[query_name], rows=5000))).hexdigest()
        assert here == expected
    done = subprocess.run(
        [sys.executable, "-c", script, str(key())],
        env={"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == EXPECTED_DIGESTS["campaign_daily"]


def test_another_seed_key_or_day_gives_other_rows(queries: dict[str, Query]) -> None:
    query = queries["campaign_daily"]
    variants = [
        lines(key(), query),
        lines(key(), query, seed=1),
        lines(key(customer_id="1000000002"), query),
        lines(key(day=date(2026, 1, 2)), query),
    ]
    assert len({hashlib.sha256(b"\n".join(variant)).digest() for variant in variants}) == len(variants)


def test_an_account_has_the_same_campaigns_on_every_day_and_shares_none(queries: dict[str, Query]) -> None:
    query = queries["campaign_daily"]

    def campaigns(wanted: PartitionKey) -> set[tuple[int, str]]:
        return {(row["campaign_id"], row["campaign_name"]) for row in rows(wanted, query)}

    assert campaigns(key()) == campaigns(key(day=date(2026, 2, 1)))
    assert not campaigns(key()) & campaigns(key(customer_id="1000000002"))


def test_a_later_extraction_restates_conversions_upwards_and_nothing_else(queries: dict[str, Query]) -> None:
    query = queries["campaign_daily"]
    extractions = [rows(key(), query, restatement=number) for number in range(7)]
    conversions = [sum(row["metrics_conversions"] for row in extraction) for extraction in extractions]
    assert conversions[:6] == sorted(set(conversions[:6]))
    assert conversions[6] == conversions[5]
    for extraction in extractions:
        for row, first in zip(extraction, extractions[0], strict=True):
            assert row["metrics_conversions"] >= first["metrics_conversions"]
            assert row | {"metrics_conversions": 0} == first | {"metrics_conversions": 0}


def test_a_query_of_any_other_name_has_the_shape_of_campaigns(queries: dict[str, Query]) -> None:
    query = replace(queries["campaign_daily"], name="something_else")
    assert list(rows(key("something_else"), query)[0]) == list(rows(key(), query)[0])


def test_a_partition_of_any_size_is_made_as_it_is_read(queries: dict[str, Query]) -> None:
    stream = fetch(key(), queries["campaign_daily"], rows=10**12)
    assert len(list(islice(stream, 10_000))) == 10_000


@pytest.mark.parametrize("count", [0, 1, 4095, 4096, 4097])
def test_there_are_as_many_rows_as_asked_for_and_a_prefix_stays_the_same(
    count: int, queries: dict[str, Query]
) -> None:
    query = queries["campaign_daily"]
    assert lines(key(), query, rows=count) == lines(key(), query, rows=5000)[:count]


def test_each_fetch_waits_for_the_latency_before_its_first_row(queries: dict[str, Query]) -> None:
    waits: list[float] = []
    source = DemoSource(DemoOptions(latency_seconds=0.2, rows=3), sleep=waits.append)
    for _ in range(2):
        list(source.fetch(key(), queries["campaign_daily"]))
    assert waits == [0.2, 0.2]


def test_the_configuration_is_shipped_with_the_package() -> None:
    import sealbook

    shipped = Path(sealbook.__file__).parent / "extract/sources/demo.yaml"
    assert demo_configuration() == shipped.read_text("utf-8")


EXPECTED_DIGESTS = {
    "campaign_daily": "ee8304bc9bce8565bca09c5d26bbf80d3b3e9a8ab11ec1d4f40bf56f2defa4ca",
    "ad_group_daily": "848b1ae166efda15740c444535005f3245b39f6bbf4c0c1b0f378f718cf02507",
    "device_daily": "d3b55c40e58ad9e5e9548142f966e922bf7dd5c97604e9e63aebb22541180396",
}
