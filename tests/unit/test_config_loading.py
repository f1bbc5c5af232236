"""What a good configuration becomes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from sealbook.config import Limits, SparkSettings, find_settings, load_settings
from sealbook.errors import ConfigError
from sealbook.model import Severity
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, RowCount, Rule
from sealbook.model.freshness import Freshness
from sealbook.model.universe import Account, Asset, AssetName, Upstream
from tests.support.books import CATALOGUE, SETTINGS, changed, write_book

IN_CONTRACT = "queries.campaign_daily.contracts.1"


def test_every_field_arrives(tmp_path: Path) -> None:
    settings = load_settings(write_book(tmp_path))
    assert settings.root == tmp_path
    assert settings.ledger == f"sqlite:///{tmp_path}/sealbook.db"
    assert settings.raw == f"{tmp_path}/raw"
    assert settings.warehouse == f"{tmp_path}/warehouse"
    assert settings.spark == SparkSettings("local[2]", {"spark.driver.memory": "2g"}, sources=("google_ads",))
    source = settings.sources["google_ads"]
    assert source.name == "google_ads"
    assert source.options == {"page_size": 5}
    assert source.limits == Limits(10.0, 2.0, 8)
    query = source.queries["campaign_daily"]
    assert (query.source, query.name, query.schema_version, query.api_version) == (
        "google_ads",
        "campaign_daily",
        "1",
        "v26",
    )
    contract = query.contracts["1"]
    assert contract.columns == (
        Column("campaign_id", ColumnType.BIGINT, required=True),
        Column("segments_date", ColumnType.DATE),
        Column("metrics_clicks", ColumnType.DOUBLE),
    )
    assert contract.primary_key == ("campaign_id",)
    assert contract.date_column == "segments_date"
    assert contract.rules == (Rule("clicks", "metrics_clicks >= 0", Decimal("0.01"), 0, Severity.ERROR),)
    assert contract.row_count == RowCount(1, 9, Decimal("0.5"), Decimal(2), 3)
    assert (contract.allow_empty, contract.strict) == (False, False)


@pytest.mark.parametrize(("written", "said"), [("0.29", "0.29"), ("0.290", "0.29"), ("2.9e-1", "0.29")])
def test_a_tolerance_is_what_is_written(tmp_path: Path, written: str, said: str) -> None:
    """R-VER-1: to the last digit, and however it is spelt; the hash is that of the number."""
    share, ratio = Decimal(said), Decimal("0.123456789012345678")
    catalogue = yaml.safe_dump(changed(CATALOGUE, f"{IN_CONTRACT}.row_count.min_ratio", "RATIO"))
    catalogue = catalogue.replace("max_share: 0.01", f"max_share: {written}").replace("RATIO", str(ratio))
    settings = load_settings(write_book(tmp_path, SETTINGS, catalogue))
    contract = settings.sources["google_ads"].queries["campaign_daily"].contracts["1"]
    assert contract.rules[0].max_share == share
    assert contract.row_count.min_ratio == ratio
    assert contract.hash == replace(contract, rules=(replace(contract.rules[0], max_share=share),)).hash


def test_accounts_have_what_they_say_and_else_what_their_source_says(tmp_path: Path) -> None:
    own = {"id": "345-678-9012", "time_zone": "America/New_York", "first_day": "2025-03-01"}
    google_ads = {
        **SETTINGS["sources"]["google_ads"],
        "customers": ["123-456-7890", {"id": 2345678901, "last_day": "2026-06-30"}, own],
        "time_zone": "Europe/Berlin",
        "first_day": "2024-01-01",
    }
    source = load_settings(write_book(tmp_path, changed(SETTINGS, "sources.google_ads", google_ads))).sources[
        "google_ads"
    ]
    berlin, new_year = ZoneInfo("Europe/Berlin"), date(2024, 1, 1)
    assert source.customers == ("1234567890", "2345678901", "3456789012")
    assert list(source.accounts.values()) == [
        Account("1234567890", berlin, new_year),
        Account("2345678901", berlin, new_year, date(2026, 6, 30)),
        Account("3456789012", ZoneInfo("America/New_York"), date(2025, 3, 1)),
    ]


def test_plain_customers_have_days_in_utc(tmp_path: Path) -> None:
    source = load_settings(write_book(tmp_path)).sources["google_ads"]
    assert source.accounts == {each: Account(each, UTC) for each in source.customers}


def test_a_policy_of_the_source_holds_for_queries_that_have_none(tmp_path: Path) -> None:
    settings = changed(SETTINGS, "sources.google_ads.freshness", {"due": ["6h", "3d"], "max_lag": "30m"})
    own = {**CATALOGUE["queries"]["campaign_daily"], "freshness": {"due": ["0h"]}}
    upstreams = [
        {"query": "campaign_daily", "days": [-7, 0]},
        {"query": "campaign_daily", "customers": "all"},
    ]
    catalogue = changed(CATALOGUE, "queries.own_daily", {**own, "upstreams": upstreams})
    source = load_settings(write_book(tmp_path, settings, catalogue)).sources["google_ads"]
    campaign, other = AssetName("google_ads", "campaign_daily"), AssetName("google_ads", "own_daily")
    assert list(source.assets) == [
        Asset(campaign, Freshness((timedelta(hours=6), timedelta(days=3)), timedelta(minutes=30))),
        Asset(
            other,
            Freshness((timedelta(),)),
            (Upstream(campaign, -7, 0), Upstream(campaign, all_customers=True)),
        ),
    ]


def test_the_scope_of_a_book(tmp_path: Path) -> None:
    settings = load_settings(write_book(tmp_path))
    assert (settings.tenant, settings.workspace) == ("default", "default")
    named = load_settings(write_book(tmp_path, {**SETTINGS, "tenant": "acme", "workspace": "eu_1"}))
    assert (named.tenant, named.workspace) == ("acme", "eu_1")


def test_time_zones_are_there_on_a_machine_that_has_none(tmp_path: Path) -> None:
    file = write_book(tmp_path, changed(SETTINGS, "sources.google_ads.time_zone", "America/New_York"))
    program = f"from sealbook.config import load_settings; load_settings({str(file)!r})"
    environment = {**os.environ, "PYTHONTZPATH": str(tmp_path / "nothing")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_only_the_ledger_must_be_said(tmp_path: Path) -> None:
    settings = load_settings(write_book(tmp_path, "ledger: sqlite:///sealbook.db"))
    assert settings.raw == f"{tmp_path}/raw"
    assert settings.warehouse == f"{tmp_path}/warehouse"
    assert settings.sources == {}
    assert settings.spark == SparkSettings("local[*]", {})


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ('"123-456-7890"', "1234567890"),
        ('"1234567890"', "1234567890"),
        ("1234567890", "1234567890"),
        ("0123456789", "0123456789"),  # YAML 1.1 would read an octal number here
        ("'0123456789'", "0123456789"),
    ],
)
def test_customer_ids_are_normalised_at_this_edge(tmp_path: Path, written: str, canonical: str) -> None:
    """R-KEY-2."""
    text = (
        "ledger: sqlite:///x.db\n"
        f"sources: {{google_ads: {{queries: config/google_apis.yaml, customers: [{written}]}}}}"
    )
    assert load_settings(write_book(tmp_path, text)).sources["google_ads"].customers == (canonical,)


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("sqlite:///book.db", "sqlite:///{root}/book.db"),
        ("sqlite:///sub/book.db", "sqlite:///{root}/sub/book.db"),
        ("sqlite:////var/lib/book.db", "sqlite:////var/lib/book.db"),
        ("postgresql://user:secret@host/db", "postgresql://user:secret@host/db"),
        ("postgresql://user@host:5432/db?sslmode=require", "postgresql://user@host:5432/db?sslmode=require"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql"),
        ("postgresql://?service=book", "postgresql://?service=book"),
        ("postgresql+psycopg://host/db", "postgresql+psycopg://host/db"),
    ],
)
def test_ledger_urls(tmp_path: Path, written: str, becomes: str) -> None:
    file = write_book(tmp_path, changed(SETTINGS, "ledger", written))
    assert load_settings(file).ledger == becomes.format(root=tmp_path)


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("raw", "{root}/raw"),
        ("./a/b/", "{root}/a/b"),
        ("/mnt/raw", "/mnt/raw"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/some/prefix/", "s3://bucket/some/prefix"),
        ("gs://bucket/raw", "gs://bucket/raw"),
        ("az://container/raw", "az://container/raw"),
    ],
)
def test_storage_places(tmp_path: Path, written: str, becomes: str) -> None:
    file = write_book(tmp_path, changed(SETTINGS, "raw", written))
    assert load_settings(file).raw == becomes.format(root=tmp_path)


def test_environment_variables_stand_in_for_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "s3cret")
    monkeypatch.setenv("ACCOUNT", "987-654-3210")
    document = changed(SETTINGS, "ledger", "postgresql://book:${DB_PASSWORD}@db/book")
    document = changed(document, "sources.google_ads.customers", ["${ACCOUNT}"])
    document = changed(document, "sources.google_ads.options", {"deep": [{"costs": "5 $$ ${ACCOUNT}"}]})
    settings = load_settings(write_book(tmp_path, document))
    assert settings.ledger == "postgresql://book:s3cret@db/book"
    assert settings.sources["google_ads"].customers == ("9876543210",)
    assert settings.sources["google_ads"].options == {"deep": [{"costs": "5 $ 987-654-3210"}]}
    assert "s3cret" not in repr(settings)


def test_spark_settings_are_text(tmp_path: Path) -> None:
    config = {"spark.executor.cores": 2, "spark.sql.adaptive.enabled": False, "spark.app.name": "x"}
    settings = load_settings(write_book(tmp_path, changed(SETTINGS, "spark.config", config)))
    assert settings.spark.config == {
        "spark.executor.cores": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.app.name": "x",
    }


def test_yaml_guesses_nothing(tmp_path: Path) -> None:
    text = """
ledger: sqlite:///x.db
sources:
  demo:
    queries: config/google_apis.yaml
    customers: [a]
    options: {a: no, b: 2026-01-01, c: 0x10, d: 12:30, e: .5, f: 1_000, g: true, h: ~, i: 1e3, j: '7'}
"""
    settings = load_settings(write_book(tmp_path, text, changed(CATALOGUE, "source", "demo")))
    assert settings.sources["demo"].options == {
        "a": "no",
        "b": "2026-01-01",
        "c": "0x10",
        "d": "12:30",
        "e": 0.5,
        "f": "1_000",
        "g": True,
        "h": None,
        "i": 1000.0,
        "j": "7",
    }


def test_catalogues_may_share_parts_by_anchors(tmp_path: Path) -> None:
    catalogue = """
source: google_ads
queries:
  one:
    text: x
    schema_version: "2"
    contracts:
      "1": &first
        columns: &columns {id: {type: int}, name: {type: string}}
        primary_key: [id]
      "2":
        <<: *first
        columns: {<<: *columns, id: {type: bigint}}
"""
    query = load_settings(write_book(tmp_path, SETTINGS, catalogue)).sources["google_ads"].queries["one"]
    assert query.contracts["1"].columns[0] == Column("id", ColumnType.INT)
    assert query.contracts["2"].columns[0] == Column("id", ColumnType.BIGINT)
    assert query.contracts["2"].primary_key == ("id",)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sealbook.yaml"
    file.write_bytes(b"\xef\xbb\xbfledger: sqlite:///x.db\n")
    assert load_settings(file).ledger.endswith("x.db")


def test_found_by_file_by_folder_and_upwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_book(tmp_path)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_settings(file) == file
    assert find_settings(str(tmp_path)) == file
    monkeypatch.chdir(below)
    assert find_settings() == file


def test_the_nearest_file_upwards_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_book(tmp_path)
    nearer = write_book(tmp_path / "a")
    (tmp_path / "a" / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert find_settings() == nearer


def test_no_file_upwards_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"there is no sealbook\.yaml in") as caught:
        find_settings()
    assert "sealbook init" in str(caught.value.remedy)
