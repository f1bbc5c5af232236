"""The whole way of the data on the command line, on PostgreSQL and on object storage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from sealbook.extract.sources.demo import demo_configuration
from tests.support.cli import run
from tests.support.demo_books import restate
from tests.support.ledger import PostgresqlServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

DAYS = ("--since", "2026-01-01", "--until", "2026-01-02")
QUESTION = "select customer_id, logical_date, count(*) n, min(run_id) run from campaign_daily group by all"


@pytest.fixture
def on_s3(s3_url: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prefix in an empty bucket, which workers can reach too."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "NO_PROXY"):
        monkeypatch.setitem(spark.sparkContext.environment, name, os.environ[name])
    return s3_url.removesuffix("/raw")


@pytest.fixture(params=["postgresql and a folder", "sqlite and s3"])
def book(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Path:
    """A book of three demo accounts, one of them with a bad day."""
    del spark  # commands use the session that there is
    ledger, root = "sqlite:///book.db", "."
    if request.param == "sqlite and s3":
        root = request.getfixturevalue("on_s3")
    else:
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        ledger = server.create_database()
    bad = {"kind": "malformed", "customers": ["c2"], "dates": ["2026-01-02"]}
    demo = {
        "queries": "demo.yaml",
        "customers": ["c0", "c1", "c2"],
        "last_day": "2026-01-02",
        "options": {"rows": 5, "faults": [bad]},
    }
    settings = {
        "ledger": ledger,
        "raw": f"{root}/raw",
        "warehouse": f"{root}/warehouse",
        "sources": {"demo": demo},
        "spark": {"master": "local[2]"},
    }
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    return tmp_path


def test_extract_validate_load_read_verify_and_clean_up(book: Path) -> None:
    def sealbook(*arguments: str, code: int = 0) -> Any:
        ran = run(*arguments, "--format", "json", cwd=book)
        assert ran.code == code, ran.err
        return ran.json

    def pipeline() -> str:
        """Go the whole way once, and return the run."""
        sealed = sealbook("extract", *DAYS, "--query", "campaign_daily")
        sealbook("validate", code=3)
        sealbook("load")
        [run_id] = {row["run_id"] for row in sealed}
        return str(run_id)

    assert run("ledger", "migrate", cwd=book).code == 0
    first = pipeline()

    answer = sealbook("sql", QUESTION)
    assert len(answer) == 5
    assert {(row["n"], row["run"]) for row in answer} == {(5, first)}
    kinds = {
        (row["customer_id"], row["logical_date"]): row["kind"]
        for row in sealbook("coverage", "campaign_daily")
    }
    assert kinds.pop(("c2", "2026-01-02")) == "failed"
    assert set(kinds.values()) == {"published"}
    assert sealbook("warehouse", "verify") == []

    same = pipeline()

    assert {(row["n"], row["run"]) for row in sealbook("sql", QUESTION)} == {(5, same)}
    assert sealbook("warehouse", "gc", "--retain", "0m") == []  # the same payload shares its files
    assert sealbook("warehouse", "verify") == []

    restate(book)
    second = pipeline()

    assert {(row["n"], row["run"]) for row in sealbook("sql", QUESTION)} == {(5, second)}
    assert sealbook("warehouse", "gc") == []
    removed = sealbook("warehouse", "gc", "--retain", "0m")
    assert {row["run_id"] for row in removed} == {first}
    assert len(removed) == 5
    assert sealbook("warehouse", "verify") == []
    assert {(row["n"], row["run"]) for row in sealbook("sql", QUESTION)} == {(5, second)}
    assert sealbook("load") == []
