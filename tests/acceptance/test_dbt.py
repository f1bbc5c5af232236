"""A real dbt on DuckDB: models over what is published, and how fresh it is, by the sources that we write."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
import yaml

from sealbook.ledger import open_ledger
from tests.support.apart import DBT, run_beside
from tests.support.cli import run
from tests.support.demo_books import write_demo_book
from tests.support.ledger import reject
from tests.support.pages import follow
from tests.support.published import key, publish, write_book

PROFILE = {
    "type": "duckdb",
    "path": "shop.duckdb",
    "threads": 4,
    "plugins": [{"module": "sealbook.dbt", "alias": "sealbook", "config": {"book": "../book"}}],
}
MODELS = {
    "days": "select logical_date, count(*) as n from {{ source('demo', 'campaign_daily') }} group by 1",
    "account": "select sum(clicks) as clicks from {{ source('demo', 'campaign_daily') }}"
    " where customer_id = 'c0'",
    "joined": "select count(*) as n from {{ ref('days') }}, {{ ref('account') }}",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A dbt project beside a book with two published partitions, and one that was demoted."""
    book, project = tmp_path / "book", tmp_path / "shop"
    book.mkdir()
    write_book(book)
    settings = yaml.safe_load((book / "sealbook.yaml").read_text())
    settings["sources"]["demo"]["freshness"] = {"due": ["6h", "3d"], "max_lag": "12h"}
    (book / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    with open_ledger(f"sqlite:///{book / 'book.db'}") as ledger:
        publish(ledger, book / "warehouse", [key(0, 0), key(0, 1), key(1, 0)], version="2")
        ledger.judge([reject(key(1, 0), 1, again="later")])
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text(yaml.safe_dump({"name": "shop", "profile": "shop"}))
    profiles = {"shop": {"target": "dev", "outputs": {"dev": PROFILE}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profiles))
    for name, text in MODELS.items():
        (project / "models" / f"{name}.sql").write_text("{{ config(materialized='table') }}\n" + text)
    written = run("dbt", "sources", "--output", str(project / "models" / "sealbook.yml"), cwd=book)
    assert written.code == 0, written.err
    return project


def dbt(project: Path, *arguments: str) -> tuple[int, str]:
    """Give dbt a command."""
    program = "import sys; from dbt.cli.main import cli; cli()"
    ran = run_beside(DBT, "-c", program, *arguments, cwd=project, env={"DBT_SEND_ANONYMOUS_USAGE_STATS": "0"})
    return ran.returncode, ran.stdout


def test_the_page(tmp_path: Path) -> None:
    """how-to/dbt.md, beside a book of the demo that nobody has run yet."""
    book = tmp_path / "book"
    write_demo_book(book)
    assert run("ledger", "migrate", cwd=book).code == 0
    (tmp_path / "shop" / "models").mkdir(parents=True)
    stand_ins = {
        "pip install 'sealbook[dbt]'": "true",
        "dbt build": f"PYTHONPATH={DBT} DBT_SEND_ANONYMOUS_USAGE_STATS=0 python -m dbt.cli.main build",
        "dbt source freshness": "true",  # as above, in a test of its own
    }
    assert "clicks_by_day" in follow("how-to/dbt.md", book, stand_ins=stand_ins)


def test_models_are_built_of_what_is_published_and_of_nothing_else(shop: Path) -> None:
    code, said = dbt(shop, "build")
    assert code == 0, said
    with duckdb.connect(shop / "shop.duckdb") as built:
        assert built.sql("select n from days order by logical_date").fetchall() == [(10,), (10,)]
        assert built.sql("select clicks from account").fetchall() == [(20,)]
        assert built.sql("select n from joined").fetchall() == [(2,)]


def test_freshness_is_when_a_query_was_published_last(shop: Path) -> None:
    code, said = dbt(shop, "source", "freshness")
    assert code == 1, said
    results = json.loads((shop / "target" / "sources.json").read_text())["results"]
    ended = {each["unique_id"]: (each["status"], each["criteria"]["warn_after"]["count"]) for each in results}
    assert ended == {
        "source.shop.demo.campaign_daily": ("pass", 36),
        "source.shop.demo.clicks": ("error", 36),  # nothing of it was ever published
    }
