"""R-EVT-11: what an extraction sealed, and died before it told, is told by the stage that finds it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

import sealbook
from sealbook.book import Book
from sealbook.extract.sources.demo import demo_configuration
from sealbook.model import RunId, RunSnapshot, RunStatus, Verdict
from sealbook.model.events import EventType
from sealbook.model.selection import Selection
from sealbook.status.verify import verify_ledger
from tests.support.killing import wait_for_the_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

CHOSEN = Selection(queries="campaign_daily", since="2026-01-01", until="2026-01-02")
PARTITIONS = 4

# It seals where it is, without Spark, and dies when all is sealed and half of it is told.
PROGRAM = """
import os, signal, sys
import sealbook
from sealbook.extract.extraction import Extraction
from sealbook.extract.extractor import Extractor
from sealbook.extract.ranges import singles
from sealbook.ledger.runs import RunWriter
from sealbook.model.selection import Selection

def fetch(extraction, plan, run_id, on_progress, **_):
    [(name, keys)] = plan.keys.items()
    source = extraction._sources[name]
    extractor = Extractor(run_id, name, source.queries, extraction._raw_url, source.options, source.limits)
    results = extractor(singles(keys))
    yield results[:2]
    RunWriter.tell = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    yield results[2:]

Extraction.run = fetch
with sealbook.open(sys.argv[1]) as book:
    chosen = Selection(queries="campaign_daily", since="2026-01-01", until="2026-01-02")
    book.extract(chosen, run_id=sys.argv[2])
"""


@pytest.fixture
def book(tmp_path: Path, ledger_url: str, spark: SparkSession) -> Iterator[Book]:
    """A book of two demo accounts, on each database."""
    del spark  # the session that the book finds
    source = {"queries": "demo.yaml", "customers": ["c0", "c1"], "options": {"rows": 5}}
    settings = {"ledger": ledger_url, "sources": {"demo": source}, "spark": {"master": "local[2]"}}
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    with sealbook.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def run_id(book: Book) -> RunId:
    """A run whose extraction was killed: all of it is sealed, and the log knows of half."""
    opened = book.pipeline.open_run()
    program = [sys.executable, "-c", PROGRAM, str(book.settings.root), opened]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    book.close()  # it opens the ledger again when asked to; no connection is open meanwhile
    wait_for_the_server(book.settings.ledger)
    assert len(list(book.raw.sealed())) == PARTITIONS
    assert len(told(book, opened)) == PARTITIONS // 2
    return opened


def told(book: Book, run_id: RunId) -> list[str | None]:
    """Return the partitions that the log says are sealed, as often as it says so."""
    log = book.ledger.run_store.fetch_events(run_id)
    return [event.partition for event in log if event.event_type == EventType.PARTITION_SEALED]


def snapshot(book: Book, run_id: RunId) -> RunSnapshot:
    found = book.ledger.run_store.get_snapshot(run_id)
    assert found is not None
    assert found == book.ledger.run_store.project_snapshot(run_id)
    assert found.inconsistent == ()
    return found


def test_validation_tells_what_it_finds_sealed(book: Book, run_id: RunId) -> None:
    """Once, before it judges; and the run ends with counts that add up."""
    assert book.validate().accepted == PARTITIONS
    assert sorted(map(str, told(book, run_id))) == sorted(str(run.key) for run in book.raw.sealed())
    assert book.load().published == PARTITIONS
    ended = snapshot(book, run_id)
    assert ended.status is RunStatus.COMPLETED
    counted = ended.counters
    assert (
        counted.partitions_sealed == counted.partitions_accepted == counted.partitions_published == PARTITIONS
    )
    assert counted.records_sealed == counted.records_published == PARTITIONS * 5
    assert list(verify_ledger(book.ledger.reader)) == []


def test_loading_tells_what_it_finds_sealed(book: Book, run_id: RunId) -> None:
    """Where whoever judged it did not: a verdict may come from elsewhere."""
    book.ledger.judge(
        Verdict.accept(run.key, run.run_id, schema_version="1", record_count=5, validator_version="v")
        for run in book.raw.sealed()
    )
    assert book.load().published == PARTITIONS
    assert len(told(book, run_id)) == len(set(told(book, run_id))) == PARTITIONS
    assert snapshot(book, run_id).status is RunStatus.COMPLETED
    assert snapshot(book, run_id).counters.partitions_sealed == PARTITIONS


def test_the_extraction_goes_on_and_tells_the_rest(book: Book, run_id: RunId) -> None:
    """What it finds sealed it tells as what it seals itself; nothing is told twice."""
    outcome = book.extract(CHOSEN, run_id=run_id)
    assert outcome.endings == {"skipped": PARTITIONS}
    assert len(told(book, run_id)) == len(set(told(book, run_id))) == PARTITIONS


def test_a_rehearsal_tells_nothing(book: Book, run_id: RunId) -> None:
    """A dry run leaves no trace in the log."""
    assert book.validate(dry_run=True).accepted == PARTITIONS
    assert len(told(book, run_id)) == PARTITIONS // 2
