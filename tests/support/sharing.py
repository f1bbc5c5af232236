"""Runs that share the files of another: sealed with the same payload, and loaded without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import chain

from sealbook.book import Book
from sealbook.load.loader import Loader
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import PartitionKey
from sealbook.model.artifacts import SwapResult
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from sealbook.warehouse.cleanup import Cleanup
from sealbook.warehouse.store import ArtifactStore
from tests.support.ledger import accept, run_id
from tests.support.loading import no_spark
from tests.support.published import CONTRACTS, key, write

ROWS = 3
KEY = key()


def seal(book: Book, run: int, content: str = "a", key: PartitionKey = KEY, version: str = "1") -> None:
    """Seal a run; runs of the same content have the same payload."""
    store = RawStore.open(book.settings.raw)
    lines = [json.dumps({"id": number, "of": content}).encode() for number in range(ROWS)]
    store.seal(
        key,
        run_id(run),
        store.write(key, run_id(run), lines),
        schema_version=version,
        query_hash="0" * 64,
        extracted_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


def judge(book: Book, run: int, key: PartitionKey = KEY) -> None:
    """Accept a run."""
    book.ledger.judge([accept(key, run, records=ROWS)])


def put(book: Book, run: int, copy: int = 0) -> SwapResult:
    """Accept a run, and publish it in files of its own, as a loader that stages it."""
    judge(book, run)
    staged = write(book.settings.warehouse, KEY, run, contract=CONTRACTS["1"], rows=ROWS, copy=copy)
    return book.ledger.pointers.swap([staged])


def load(book: Book) -> list[Loaded]:
    """Load, without Spark."""
    settings = book.settings
    queries = settings.sources["demo"].queries.values()
    loader = Loader(
        book.ledger.pointers, queries, no_spark, raw_url=settings.raw, warehouse_url=settings.warehouse
    )
    return list(chain.from_iterable(loader.run(loader.plan(Selection()))))


def share(book: Book, run: int) -> None:
    """Seal and accept the same payload as another run, and load it."""
    seal(book, run)
    judge(book, run)
    assert [each.ending for each in load(book)] == [LoadEnding.IDENTICAL]


def clean_up(book: Book) -> int:
    """Remove what nothing needs, with no retention; return how many files went."""
    cleanup = Cleanup(book.ledger.pointers, ArtifactStore.open(book.settings.warehouse), retain=timedelta(0))
    return sum(each.files for each in cleanup.remove())
