"""A standalone cluster whose executors have a bare Python: the same rows and states as on one machine."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import sealbook
from sealbook.extract.sources.demo import demo_configuration
from tests.support.cluster import Cluster, bare_python, program_on, sealbook_on
from tests.support.ledger import PostgresqlServer
from tests.support.s3 import Fault, S3Server

pytestmark = pytest.mark.xdist_group("cluster")

DAYS = ("--since", "2026-01-01", "--until", "2026-01-05")
FAULTS = [
    {"kind": "malformed", "customers": ["c2"], "dates": ["2026-01-02"]},
    {"kind": "permanent", "customers": ["c1"], "dates": ["2026-01-03"]},
]


def write_book(
    folder: Path, spark: Mapping[str, object], ledger: str = "sqlite:///book.db", at: str = "."
) -> Path:
    """Write a book of three demo accounts, of which a day is malformed and another cannot be fetched."""
    demo = {
        "queries": "demo.yaml",
        "customers": ["c0", "c1", "c2"],
        "first_day": "2026-01-01",
        "last_day": "2026-01-05",
        "options": {"rows": 20, "faults": FAULTS},
    }
    settings = {
        "ledger": ledger,
        "raw": f"{at}/raw",
        "warehouse": f"{at}/warehouse",
        "sources": {"demo": demo},
        "spark": spark,
    }
    folder.mkdir()
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (folder / "demo.yaml").write_text(demo_configuration())
    return folder


def told(folder: Path) -> dict[str, Any]:
    """Return all that a book says, but for runs and times, which are never the same."""
    with sealbook.open(folder) as book:
        [run_id] = {str(each.current_run_id) for each in book.ledger.states(status="success")}
        return {
            "rows": {
                query.name: book.table(query.name).drop_columns("run_id").to_pylist()
                for query in book.queries
            },
            "states": [
                (
                    each.key,
                    each.status,
                    each.schema_version,
                    each.record_count,
                    each.attempt_count,
                    each.error_message,
                )
                for each in book.ledger.states()
            ],
            "coverage": [
                (each.key, each.kind) for query in book.queries for each in book.coverage(query.name)
            ],
            "events": Counter(each.event_type for each in book.ledger.run_store.fetch_events(run_id)),
        }


def test_a_cluster_that_loses_a_worker_gives_what_one_machine_gives(
    cluster: Cluster, tmp_path: Path, postgresql: PostgresqlServer, s3_server: S3Server, s3_url: str
) -> None:
    here = write_book(tmp_path / "here", {"master": "local[2]"})
    assert sealbook_on(here, "run", *DAYS).code == 3
    there = write_book(
        tmp_path / "there", cluster.settings(), postgresql.create_database(), s3_url.removesuffix("/raw")
    )
    assert sealbook_on(there, "ledger", "migrate").code == 0
    with cluster.worker() as doomed:
        s3_server.expect(Fault(at=40, applied=False, then=doomed.kill))
        ran = sealbook_on(there, "run", *DAYS)
        assert ran.code == 3, ran.err
        assert doomed.poll() == -signal.SIGKILL
    assert told(there) == told(here)


READ = """
import os
from pyspark.sql import SparkSession
import sealbook

session = SparkSession.builder.master({master!r}).config(map={config!r}).getOrCreate()
with sealbook.open() as book:
    outcome = book.run(sealbook.Selection(since="2026-01-01", until="2026-01-01"))
    table = book.table("campaign_daily")
    read = book.read("campaign_daily", spark=session, scan="source")
    same = sorted(read.toArrow().to_pylist(), key=str) == sorted(table.to_pylist(), key=str)
    print(outcome.status, table.num_rows, same)
"""


def test_executors_that_lack_something_are_refused_in_a_sentence(cluster: Cluster, tmp_path: Path) -> None:
    """And the run has failed: nothing is left that looks as if it went on."""
    poor = bare_python(tmp_path / "poor", "pyspark", "py4j")
    settings = {
        "sealbook": cluster.settings(ship_packages=False),
        "pyarrow": cluster.settings(poor),
    }
    for lacking, spark in settings.items():
        book = write_book(tmp_path / lacking, spark)
        ran = sealbook_on(book, "run", *DAYS)
        assert ran.code == 2, ran.err
        assert f"lacks {lacking}" in ran.said
        assert "remedy: Install" in ran.said
        assert "Traceback" not in ran.err
        [row] = sealbook_on(book, "runs", "list", "--format", "json").json
        assert row["status"] == "FAILED"


def test_a_program_hands_over_the_session_that_it_has(cluster: Cluster, tmp_path: Path) -> None:
    spark = cluster.settings()
    book = write_book(tmp_path / "book", {"master": cluster.url})
    code = READ.format(master=spark["master"], config=spark["config"])
    said = program_on(book, code, {"PYSPARK_PYTHON": str(cluster.python)})
    assert said.split() == ["COMPLETED", "60", "True"]
