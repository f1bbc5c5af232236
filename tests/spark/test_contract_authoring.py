"""`sealbook contract infer`, `diff` and `test`, as a user types them, on a real book."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import sealbook
from sealbook.book import Book
from sealbook.config.catalogue import load_catalogue
from sealbook.config.contract_yaml import contract_yaml
from sealbook.errors import NotFound
from sealbook.ledger import Ledger
from sealbook.model.contract import Contract
from sealbook.model.selection import Selection
from tests.support.books import write_book
from tests.support.cli import run
from tests.support.validation import Bench, days, key, ledger_content, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

CONTRACT: dict[str, Any] = {
    "columns": {
        "campaign_id": {"type": "bigint", "required": True},
        "campaign_name": {"type": "string"},
        "segments_date": {"type": "date", "required": True},
        "segments_device": {"type": "string", "required": True},
        "metrics_impressions": {"type": "bigint"},
        "metrics_clicks": {"type": "bigint"},
        "metrics_conversions": {"type": "double"},
        "metrics_cost_micros": {"type": "bigint"},
    },
    "primary_key": ["campaign_id", "segments_device"],
    "date_column": "segments_date",
    "rules": [
        {"name": "within", "expression": "metrics_clicks <= metrics_impressions", "max_share": 0.1},
        {"name": "few", "expression": "metrics_conversions < 5", "severity": "warn"},
        {"name": "lame", "expression": "campaign_id is not null or campaign_name = 'x'", "max_count": 1000},
    ],
    "row_count": {"min": 2, "max": 10, "min_ratio": 0.5, "max_ratio": 2},
}
SETTINGS = {
    "ledger": "sqlite:///book.db",
    "sources": {"demo": {"queries": "config/google_apis.yaml", "customers": ["c0"]}},
}
QUERY = {"text": "x", "schema_version": "1", "contracts": {"1": CONTRACT}}


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    write_book(tmp_path, SETTINGS, {"source": "demo", "queries": {"campaign_daily": QUERY}})
    with sealbook.open(tmp_path) as opened:
        yield opened


def content(book: Book) -> list[object]:
    ledger: Ledger = book.ledger
    files = {path: path.read_bytes() for path in Path(book.settings.raw).rglob("*") if path.is_file()}
    return [ledger_content(ledger), ledger.reader.contracts.history(), files]


def seal(book: Book, spark: SparkSession) -> Bench:
    bench = Bench(Path(book.settings.raw), book.ledger, spark, tuple(book.queries))
    for day in days(3):
        bench.seal(key(day=day), rows(4, day))
    return bench


def loaded(folder: Path, text: str) -> Contract:
    """Paste what was proposed into a catalogue, and load that."""
    pasted = "".join(f"      {line}\n" for line in text.splitlines())
    file = folder / "pasted.yaml"
    file.write_text(
        "source: demo\nqueries:\n  campaign_daily:\n    text: x\n"
        f'    schema_version: "2"\n    contracts:\n{pasted}'
    )
    return load_catalogue(file, "demo")["campaign_daily"].contracts["2"]


def test_what_is_inferred_loads_as_it_is_and_accepts_what_it_comes_from(
    book: Book, spark: SparkSession, tmp_path: Path
) -> None:
    bench = seal(book, spark)
    before = content(book)

    ran = run("contract", "infer", "--query-name", "campaign_daily", cwd=tmp_path)

    assert ran.code == 0, ran.said
    contract = loaded(tmp_path, ran.out)
    assert {column.name: (str(column.type), column.required) for column in contract.columns} == {
        "campaign_id": ("bigint", True),
        "campaign_name": ("string", True),
        "segments_date": ("date", True),
        "segments_device": ("string", True),
        "metrics_impressions": ("bigint", True),
        "metrics_clicks": ("bigint", True),
        "metrics_conversions": ("double", True),
        "metrics_cost_micros": ("bigint", True),
    }
    assert (contract.primary_key, contract.date_column) == (("campaign_id",), "segments_date")
    assert (contract.row_count.min, contract.row_count.max) == (2, 8)
    assert "# Proposed from 12 rows of 3 runs of demo/campaign_daily." in ran.out
    assert content(book) == before
    proposal = book.infer_contract(Selection(queries="campaign_daily"), schema_version="1")
    [query] = book.queries
    bench.queries = (replace(query, contracts={"1": proposal.contract}),)
    assert all(verdict.accepted for verdict in bench.validate().verdicts.values())


def test_nested_values_nulls_and_odd_names(book: Book, spark: SparkSession, tmp_path: Path) -> None:
    bench = Bench(Path(book.settings.raw), book.ledger, spark, tuple(book.queries))
    lines = [
        (
            b'{"id":1,"Bad":1,"big":12345678901234567890,"mixed":1,"none":null,"at":"2026-01-01T00:00:00Z",'
            b'"tags":["a"],"ship":{"zip":"1","n":[1]},"odd":{"a b":1},"on":true,"half":1}'
        ),
        (
            b'{"id":2,"big":1,"mixed":"x","none":null,"at":"2026-01-01 00:00:00","tags":[],"ship":{},'
            b'"odd":{"c d":2},"on":false,"later":1}'
        ),
    ]
    one = bench.seal(key(), lines)
    ran = run("contract", "infer", str(one), cwd=tmp_path)
    contract = loaded(tmp_path, ran.out)
    assert {column.name: (str(column.type), column.required) for column in contract.columns} == {
        "id": ("bigint", True),
        "big": ("decimal(38,0)", True),
        "mixed": ("json", True),
        "none": ("string", False),
        "at": ("timestamp", True),
        "tags": ("array<string>", True),
        "ship": ("struct<zip:string,n:array<bigint>>", True),
        "odd": ("map<string,bigint>", True),
        "on": ("boolean", True),
        "half": ("bigint", False),
        "later": ("bigint", False),
    }
    assert "'Bad'" in ran.out
    assert "# none was null in every row." in ran.out
    told = run("contract", "infer", str(one), "--schema-version", "7", "--format", "json", cwd=tmp_path).json
    assert told["contract"]["schema_version"] == "7"


def test_there_must_be_runs_of_one_query(book: Book, tmp_path: Path) -> None:
    ran = run("contract", "infer", "demo/c0/campaign_daily/2026-01-01", cwd=tmp_path)
    assert ran.code == 1
    assert "no sealed run is chosen" in ran.said
    with pytest.raises(NotFound, match="no sealed run is chosen"):
        book.infer_contract(Selection())


def test_every_check_is_tried_and_one_that_lets_its_fault_pass_is_named(
    book: Book, spark: SparkSession, tmp_path: Path
) -> None:
    """Each check of the contract, each column's type, each required column; nothing is written."""
    seal(book, spark).validate()
    before = content(book)

    bites = list(book.reader.try_contracts(Selection()))

    by_check: dict[str, list[bool]] = {}
    for each in bites:
        by_check.setdefault(each.check, []).append(each.bites)
    assert list(by_check) == [
        "metadata", "payload_bytes", "payload_sha256", "json", "record_count", "types", "required",
        "extra_columns", "primary_key", "date_column", "not_empty", "row_count", "within", "few", "lame",
    ]  # fmt: skip
    assert by_check.pop("lame") == [False]
    assert all(map(all, by_check.values()))
    assert [len(by_check[name]) for name in ("types", "required", "row_count")] == [8, 3, 4]
    warned = {each.check for each in bites if each.severity == "warn"}
    assert warned == {"extra_columns", "few"}
    assert content(book) == before

    ran = run("contract", "test", str(key()), "--format", "json", cwd=tmp_path)
    assert ran.code == 3
    assert [each["bites"] for each in ran.json if each["check"] == "lame"] == [False]
    assert "1 fault pass" in ran.said


@pytest.mark.usefixtures("book")
def test_nothing_accepted_is_nothing_to_test(tmp_path: Path) -> None:
    ran = run("contract", "test", cwd=tmp_path)
    assert ran.code == 1
    assert "no partition that is chosen is accepted and has rows" in ran.said


@pytest.mark.usefixtures("book")
def test_what_differs_between_two_versions(tmp_path: Path) -> None:
    second = yaml.safe_load(yaml.safe_dump(CONTRACT))
    columns = second["columns"]
    columns["taps"] = {**columns.pop("metrics_clicks"), "renamed_from": "metrics_clicks"}
    columns["metrics_impressions"] = {"type": "decimal(20,1)"}
    columns["campaign_name"] = {"type": "int", "required": True}
    del columns["metrics_cost_micros"]
    columns["fresh"] = {"type": "array<string>"}
    second |= {"valid_from": "2026-03-01", "text": "y", "strict": True, "primary_key": ["campaign_id"]}
    second["rules"] = [{"name": "few", "expression": "metrics_conversions < 6", "severity": "warn"}]
    second["row_count"] = {"min": 2}
    query = {**QUERY, "schema_version": "2", "contracts": {"1": CONTRACT, "2": second}}
    write_book(tmp_path, SETTINGS, {"source": "demo", "queries": {"campaign_daily": query}})

    ran = run("contract", "diff", "1", "2", "--format", "json", cwd=tmp_path)

    told = {(each["field"], each["before"], each["after"]): each["note"] for each in ran.json}
    cannot = "cannot be read as one column: give it another name"
    assert told == {
        ("valid_from", None, "2026-03-01"): "the first day that is fetched under it",
        ("text", "x", "y"): "",
        ("column campaign_name", "string", "int"): cannot,
        ("column campaign_name", "optional", "required"): "",
        ("column metrics_impressions", "bigint", "decimal(20,1)"): "read as decimal(20,1)",
        ("column taps", "metrics_clicks", "taps"): "one column in reads: renamed_from",
        ("column fresh", None, "array<string>"): "null for rows of the other version",
        ("column metrics_cost_micros", "bigint", None): "null for rows of the other version",
        ("primary_key", "campaign_id, segments_device", "campaign_id"): "",
        ("strict", "false", "true"): "",
        ("rule within", "metrics_clicks <= metrics_impressions (max_share 0.1)", None): "",
        ("rule few", "metrics_conversions < 5 (warn)", "metrics_conversions < 6 (warn)"): "",
        ("rule lame", "campaign_id is not null or campaign_name = 'x' (max_count 1000)", None): "",
        ("row_count max", "10", None): "",
        ("row_count min_ratio", "0.5", None): "",
        ("row_count max_ratio", "2", None): "",
    }
    assert "taps" in run("contract", "diff", "1", "2", "--query-name", "campaign_daily", cwd=tmp_path).out
    assert "say the same" in run("contract", "diff", "1", "1", cwd=tmp_path).said
    wrong = run("contract", "diff", "1", "3", cwd=tmp_path)
    assert wrong.code == 2
    assert "schema_version '1 and 3' is not valid: expected two of one query: 1, 2" in wrong.said
    shown = run("contract", "show", cwd=tmp_path).out
    assert "2026-03-01 …" in shown
    assert "renamed from metrics_clicks" in shown


def test_a_contract_that_is_written_says_the_same(book: Book, tmp_path: Path) -> None:
    [query] = book.queries
    contract = replace(query.contracts["1"], schema_version="2", strict=True, allow_empty=True)
    assert loaded(tmp_path, contract_yaml(contract)).hash == contract.hash
