"""Decimals, arrays, structs, maps and JSON end to end: judged, staged, read by Spark, Arrow and SQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sealbook
from sealbook.book import Book
from sealbook.load.loader import Loader
from sealbook.load.staging import Stager, StagingTask, Written
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from sealbook.rows.units import Unit
from sealbook.validate.bins import Binning
from sealbook.warehouse.store import ArtifactStore
from tests.support.books import write_book
from tests.support.cli import run
from tests.support.validation import RUN, Bench, key, seal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

CATALOGUE: dict[str, Any] = {
    "source": "demo",
    "queries": {
        "orders": {
            "text": "select",
            "schema_version": "1",
            "contracts": {
                "1": {
                    "columns": {
                        "id": {"type": "decimal(20,3)", "required": True},
                        "price": {"type": "decimal(10,2)"},
                        "tags": {"type": "array<string>"},
                        "ship_to": {"type": "struct<City:string,since:date,at:array<timestamp>>"},
                        "labels": {"type": "map<string,decimal(4,1)>"},
                        "raw": {"type": "json"},
                    },
                    "primary_key": ["id"],
                    "rules": [
                        {"name": "tagged", "expression": "size(tags) > 0"},
                        {"name": "city", "expression": "ship_to.City <> 'Nowhere'"},
                        {"name": "cheap", "expression": "price * 2 < 100 and labels['vat'] < 30"},
                        {"name": "kind", "expression": "get_json_object(raw, '$.kind') = 'a'"},
                    ],
                }
            },
        }
    },
}
SETTINGS = {
    "ledger": "sqlite:///book.db",
    "sources": {"demo": {"queries": "config/google_apis.yaml", "customers": ["c0"]}},
}
GOOD = (
    b'{"id":1,"price":9.5,"tags":["a",null],"ship_to":{"City":"Ulm","since":"2026-01-02",'
    b'"at":["2026-01-01T01:00:00+01:00"]},"labels":{"vat":"19.0"},"raw":{ "kind":"a", "n":1e400}}\n'
)
ROW = {
    "id": Decimal("1.000"),
    "price": Decimal("9.50"),
    "tags": ["a", None],
    "ship_to": {"City": "Ulm", "since": date(2026, 1, 2), "at": [datetime(2026, 1, 1, tzinfo=UTC)]},
    "labels": {"vat": Decimal("19.0")},
    "raw": '{ "kind":"a", "n":1e400}',
}
PARTITION = key(query_name="orders")


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    write_book(tmp_path, SETTINGS, CATALOGUE)
    with sealbook.open(tmp_path) as opened:
        yield opened


def bench_of(book: Book, spark: SparkSession) -> Bench:
    return Bench(Path(book.settings.raw), book.ledger, spark, tuple(book.queries))


def test_every_reader_gives_the_same_values(book: Book, spark: SparkSession) -> None:
    """R-CON-4, R-CON-6: Spark by both of its scans, Arrow and SQL; and commands show them."""
    bench = bench_of(book, spark)
    bench.seal(PARTITION, GOOD)
    assert bench.validate().verdict(PARTITION).accepted
    loader = Loader(
        book.ledger.pointers,
        book.queries,
        lambda: spark,
        raw_url=book.settings.raw,
        warehouse_url=book.settings.warehouse,
    )
    list(loader.run(loader.plan(Selection())))

    table = book.table("orders", columns=list(ROW))
    assert table.to_pylist(maps_as_pydicts="strict") == [ROW]
    asked = book.sql(f"select {', '.join(ROW)} from orders where ship_to.City = 'Ulm' and price < 10")
    assert asked == table
    summed = book.sql("select sum(price) as s, labels['vat'] as v, tags[1] as t from orders group by all")
    assert summed.to_pylist() == [{"s": Decimal("9.50"), "v": Decimal("19.0"), "t": "a"}]
    for scan in ("source", "parquet"):
        frame = book.read("orders", spark=spark, columns=list(ROW), scan=scan)
        [row] = frame.collect()
        told = row.asDict(recursive=True)
        told["ship_to"]["at"] = [each.replace(tzinfo=UTC) for each in told["ship_to"]["at"]]
        assert told == ROW
    shown = run("sql", f"select {', '.join(ROW)} from orders", "--format", "json", cwd=book.settings.root)
    assert shown.json == [
        {
            **ROW,
            "id": 1.0,
            "price": 9.5,
            "labels": {"vat": 19.0},
            "ship_to": {"City": "Ulm", "since": "2026-01-02", "at": ["2026-01-01T00:00:00Z"]},
        }
    ]
    text = run("sql", "select tags, labels from orders", "--format", "csv", cwd=book.settings.root).out
    assert text.splitlines()[1] == '"[""a"",null]","{""vat"":19.0}"'


def test_rules_look_into_nested_values_and_keys_may_be_decimals(book: Book, spark: SparkSession) -> None:
    """R-VER-1, R-VER-2: whether a payload is judged whole or in slices."""
    bad = (
        GOOD.replace(b'["a",null]', b"[]")
        + GOOD.replace(b"Ulm", b"Nowhere")
        + GOOD.replace(b"9.5", b"50")
        + GOOD.replace(b'"kind":"a"', b'"kind":"b"').replace(b'"id":1', b'"id":"1.000"')
    ) * 3
    bench = bench_of(book, spark)
    bench.seal(PARTITION, bad)
    for binning in (None, Binning(2, sliced_above=400, slice_bytes=300)):
        bench.binning = binning
        outcome = bench.judge(bench.validator.plan(Selection(), dry_run=True))
        failed = outcome.failed(PARTITION)
        assert failed == {
            "primary_key": (11, (2, 3, 4, 5, 6)),
            "tagged": (3, (1, 5, 9)),
            "city": (3, (2, 6, 10)),
            "cheap": (3, (3, 7, 11)),
            "kind": (3, (4, 8, 12)),
        }
        assert "1.000" in (outcome.check(PARTITION, "primary_key").detail or "")


def test_an_artifact_is_a_function_of_its_payload_alone(book: Book) -> None:
    """R-WH-2: nested columns too have the same bytes beside any neighbour."""
    digests = []
    for neighbours in (0, 3):
        folder = Path(book.settings.root) / f"raw{neighbours}"
        keys = [*(key(f"a{number}", query_name="orders") for number in range(neighbours)), PARTITION]
        for number, each in enumerate(reversed(keys)):
            seal(folder, each, GOOD * (5 - number))
        [query] = book.queries
        units = tuple(Unit(place, each, RUN) for place, each in enumerate(keys))
        warehouse = ArtifactStore.open(Path(book.settings.root) / f"warehouse{neighbours}")
        stager = Stager(RawStore.open(folder), warehouse)
        *_, last = stager(StagingTask(query.contracts["1"], units))
        assert isinstance(last, Written)
        digests.append([part.sha256 for part in last.parts])
    assert digests[0] == digests[1]
