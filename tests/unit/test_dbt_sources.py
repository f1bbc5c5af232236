"""What `sealbook dbt sources` writes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import yaml

from sealbook.model.freshness import Freshness
from sealbook.views.dbt_sources import dbt_sources
from tests.support.cli import run
from tests.support.published import open_book, write_book


def test_every_query_is_a_table_with_its_columns_and_a_freshness_query(tmp_path: Path) -> None:
    write_book(tmp_path)
    ran = run("dbt", "sources", cwd=tmp_path)
    [source] = yaml.safe_load(ran.out)["sources"]
    assert source["name"] == "demo"
    tables = {each["name"]: each for each in source["tables"]}
    assert set(tables) == {"campaign_daily", "clicks"}
    columns = {each["name"]: each["data_type"] for each in tables["campaign_daily"]["columns"]}
    assert (columns["logical_date"], columns["clicks"]) == ("date", "bigint")
    config = tables["clicks"]["config"]
    assert config["freshness"] is None  # there is no policy
    assert "query_name = 'clicks'" in config["loaded_at_query"]
    assert not (tmp_path / "book.db").exists()


def test_a_policy_says_when_a_source_is_late(tmp_path: Path) -> None:
    with open_book("sqlite://", tmp_path) as book:
        [settings] = book.settings.sources.values()
        query = settings.queries["clicks"]
    query = query.__class__(
        **{name: getattr(query, name) for name in query.__slots__} | {"freshness": FRESHNESS}
    )
    [source] = dbt_sources([(settings, query)])["sources"]
    assert source["tables"][0]["config"]["freshness"] == {
        "warn_after": {"count": 37, "period": "hour"},
        "error_after": {"count": 61, "period": "hour"},
    }


FRESHNESS = Freshness((timedelta(hours=6),), timedelta(hours=12, minutes=30))


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    write_book(tmp_path)
    ran = run("dbt", "sources", "--output", "nowhere/sealbook.yml", cwd=tmp_path)
    assert ran.code == 2
    assert "nowhere/sealbook.yml cannot be written" in ran.said
