"""Sealed runs of single partitions, as an extractor leaves them and the log tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sealbook.book import Book
from sealbook.model import PartitionKey
from sealbook.model.partition_events import PartitionSealed
from sealbook.raw import RawStore
from sealbook.raw.lines import Row
from tests.support.ledger import run_id


def seal(book: Book, key: PartitionKey, run: int, rows: Sequence[Row]) -> None:
    """Seal rows as a run of a partition, and tell the log."""
    store = RawStore.open(book.settings.raw)
    now = datetime.now(UTC)
    sealed = store.seal(
        key,
        run_id(run),
        store.write(key, run_id(run), rows),
        schema_version="1",
        query_hash="b" * 64,
        extracted_at=now,
    )
    fact = PartitionSealed(
        key=key,
        run_id=run_id(run),
        schema_version="1",
        record_count=sealed.record_count,
        payload_bytes=sealed.payload_bytes,
        payload_sha256=sealed.payload_sha256,
        query_hash="b" * 64,
        extracted_at=now,
    )
    book.ledger.runs.tell([fact])
