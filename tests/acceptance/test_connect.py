"""Spark Connect: readers work through it, and stages say that they do not (R-CON-1)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sealbook.extract.sources.demo import demo_configuration
from tests.support.apart import CONNECT
from tests.support.cluster import program_on, sealbook_on

pytestmark = pytest.mark.xdist_group("cluster")

READ = """
from pyspark.sql import SparkSession
import sealbook

def rows(frame):
    return sorted(frame.toArrow().to_pylist(), key=str)

with sealbook.open() as book:
    table = sorted(book.table("campaign_daily").to_pylist(), key=str)
    own = rows(book.read("campaign_daily")) == table
    session = SparkSession.builder.remote({url!r}).getOrCreate()
    reads = [book.read("campaign_daily", spark=session, scan=scan) for scan in ("parquet", "source")]
    given = [rows(read) == table for read in reads]
    status = book.status_frame(spark=session).count()
    none = book.read("campaign_daily", spark=session, since="2030-01-01").count()
    print(len(table), own, *given, status, none)
"""

STREAM = """
from pathlib import Path
from pyspark.sql import SparkSession
import sealbook

def place(name):
    return str(Path(name).resolve())

with sealbook.open() as book:
    session = SparkSession.builder.remote({url!r}).getOrCreate()
    frame = book.stream("campaign_daily", rows=True, spark=session)
    for _ in range(2):
        writer = frame.writeStream.format("parquet").option("checkpointLocation", place("checkpoint"))
        writer.trigger(availableNow=True).start(place("copy")).awaitTermination()
    copy = session.read.parquet(place("copy")).toArrow()
    table = book.table("campaign_daily")
    same = sorted(copy.select(table.column_names).to_pylist(), key=str) == sorted(table.to_pylist(), key=str)
    print(same, *set(copy["_change"].to_pylist()))
"""

STAGES = """
import sealbook
from pyspark.sql import SparkSession

SparkSession.builder.remote({url!r}).getOrCreate()
with sealbook.open() as book:
    day = sealbook.Selection(since="2026-01-01", until="2026-01-01")
    for stage in (book.run, book.extract, lambda chosen: book.validate(chosen, which="accepted")):
        try:
            stage(day)
        except sealbook.errors.ConfigError as error:
            print(error)
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book with one published partition of each query."""
    demo = {"queries": "demo.yaml", "customers": ["c0"], "last_day": "2026-01-01", "options": {"rows": 5}}
    settings = {"ledger": "sqlite:///book.db", "sources": {"demo": demo}, "spark": {"master": "local[1]"}}
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    assert sealbook_on(tmp_path, "run", "--since", "2026-01-01", "--until", "2026-01-01").code == 0
    return tmp_path


def on_connect(book: Path, url: str) -> None:
    settings = yaml.safe_load((book / "sealbook.yaml").read_text())
    (book / "sealbook.yaml").write_text(yaml.safe_dump(settings | {"spark": {"master": url}}))


def test_readers_read_and_stages_refuse(book: Path, connect_server: str) -> None:
    on_connect(book, connect_server)
    packages = {"PYTHONPATH": str(CONNECT)}
    assert program_on(book, READ.format(url=connect_server), packages).split() == [
        "5",
        *["True"] * 3,
        "3",
        "0",
    ]
    streamed = program_on(book, STREAM.format(url=connect_server), packages)
    assert streamed.split() == ["True", "published"], "a stream that is started again gives nothing twice"
    said = program_on(book, STAGES.format(url=connect_server), packages).splitlines()
    assert said == ["extract, validate and load need a classic Spark session, and this is Spark Connect"] * 3

    ran = sealbook_on(book, "run", "--since", "2026-01-01", "--until", "2026-01-01")
    assert ran.code == 2
    assert "need a classic Spark session" in ran.said
    assert "RUNNING" not in {
        row["status"] for row in sealbook_on(book, "runs", "list", "--format", "json").json
    }


def test_without_its_packages_the_way_out_is_said(book: Path) -> None:
    on_connect(book, "sc://127.0.0.1:1")
    code = """
import sealbook
try:
    sealbook.open().spark
except sealbook.errors.MissingExtra as error:
    print(error.remedy)
"""
    assert program_on(book, code, {}).strip() == "pip install 'pyspark[connect]'"
