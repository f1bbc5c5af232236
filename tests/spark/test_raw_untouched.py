"""R-RAW-4: once it is sealed, nothing that is done with a book changes a byte of its raw store."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

import sealbook
from sealbook import Selection
from sealbook.book import Book
from sealbook.extract.sources.demo import demo_configuration
from sealbook.model import PartitionKey
from sealbook.raw import RawStore
from sealbook.raw.leftovers import LEAST_AGE
from sealbook.warehouse.cleanup import Cleanup
from sealbook.warehouse.store import ArtifactStore
from sealbook.warehouse.verification import Verification
from tests.support.demo_books import restate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

DAY = date(2026, 1, 1)
KEY = PartitionKey("demo", "c1", "campaign_daily", DAY)
CHOSEN = Selection(queries="campaign_daily", since=DAY, until=DAY)
MALFORMED = {"kind": "malformed", "customers": ["c2"], "dates": [DAY.isoformat()]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A demo book of two customers, of which one is always rejected."""
    source = {
        "queries": "demo.yaml",
        "customers": ["c1", "c2"],
        "options": {"rows": 5, "faults": [MALFORMED]},
    }
    settings = {"ledger": "sqlite:///book.db", "sources": {"demo": source}, "spark": {"master": "local[2]"}}
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path


def bytes_of(raw: Path) -> dict[str, str]:
    """Return the sha256 of every file of a raw store."""
    files = (path for path in raw.rglob("*") if path.is_file())
    return {str(path.relative_to(raw)): sha256(path.read_bytes()).hexdigest() for path in files}


def clean_up(book: Book) -> None:
    cleanup = Cleanup(book.ledger.pointers, ArtifactStore.open(book.settings.warehouse), timedelta(0))
    assert list(cleanup.remove())


def clean_up_raw(book: Book) -> None:
    store = RawStore.open(book.settings.raw)
    store.remove(store.leftovers(Selection(), age=LEAST_AGE))


def verify(book: Book) -> None:
    verification = Verification(book.ledger.pointers, ArtifactStore.open(book.settings.warehouse))
    assert all(not each.mismatches for each in verification.artifacts(Selection()))


def test_no_stage_changes_a_byte_of_the_raw_store(folder: Path, spark: SparkSession) -> None:
    """Validate, load, clean up, roll back, and each of them again: names and bytes stay as they were."""
    del spark  # the session that the book finds
    with sealbook.open(folder) as book:
        first = book.run(CHOSEN).run_id
    restate(folder)
    with sealbook.open(folder) as book:
        book.extract(CHOSEN)
        raw = Path(book.settings.raw)
        for path in raw.rglob("*"):
            os.utime(path, (0, 0))  # old enough for any clean-up
        before = bytes_of(raw)
        assert len(before) == 2 * 2 * 2  # a seal and a payload of two customers' two runs

        def roll_back() -> None:
            book.rollback(KEY, first, actor="ann", reason="to try it")

        steps: dict[str, Callable[[], object]] = {
            "validate": lambda: book.validate(CHOSEN),
            "load": lambda: book.load(CHOSEN),
            "roll back": roll_back,
            "validate what is accepted": lambda: book.validate(CHOSEN, which="accepted"),
            "validate what is rejected": lambda: book.validate(CHOSEN, which="rejected"),
            "clean up": lambda: clean_up(book),
            "load again": lambda: book.load(CHOSEN, rebuild=True, full=True),
            "clean up the raw store": lambda: clean_up_raw(book),
            "verify": lambda: verify(book),
        }
        for step, act in steps.items():
            act()
            assert bytes_of(raw) == before, step
        [state] = book.ledger.states(Selection(keys=[KEY]))
        assert state.current_run_id == first
