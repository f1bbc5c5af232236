"""The archive: runs that were taken out of the log, as Parquet files on a folder or an object store.

A run is one segment, or several if events came after it was retired. A segment is sealed as a raw partition
is: its file has a name of its own, and a small manifest, which is created once, names it. Another file of the
same segment is the leftover of a process that died, and whoever retires the run next deletes it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sealbook.errors import Corrupt
from sealbook.ledger.events import FeedEvent, RetiredRun
from sealbook.model import RunEvent
from sealbook.status.event_rows import SCHEMA, event_table
from sealbook.storage import Storage, Writer, open_storage

_PAGE = 5_000  # events that are written, and read, at a time
_encode = msgspec.json.Encoder(enc_hook=str).encode  # a RunId is a str, but not one that msgspec knows


@dataclass(frozen=True, slots=True)
class Span:
    """The events of a run from one number to another."""

    run_id: str
    first_seq: int
    last_seq: int

    @classmethod
    def of(cls, retired: RetiredRun) -> Span:
        """Return what a retirement took out of the log."""
        return cls(retired.run_id, retired.last_seq - retired.event_count + 1, retired.last_seq)

    @property
    def directory(self) -> str:
        """The directory of the run; the id of another engine's may hold any character."""
        return f"run_id={quote(self.run_id, safe='')}"

    @property
    def path(self) -> str:
        """What the names of its files begin with."""
        return f"{self.directory}/events-{self.first_seq:010}-{self.last_seq:010}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A span that is archived: its file, and a sha256 over its events in the order of the file."""

    span: Span
    file: str
    events: int
    sha256: str


class RunArchive:
    """Keeps the events of retired runs; the storage is opened when it is first needed."""

    def __init__(self, url: str) -> None:
        self.url = url

    @cached_property
    def _storage(self) -> Storage:
        return open_storage("archive", self.url)[1]

    def find(self, span: Span) -> Segment | None:
        """Return the segment of a span; None if it was not archived."""
        path = f"{span.path}.json"
        data = self._storage.get(path)
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=Segment)
        except msgspec.DecodeError as error:
            raise Corrupt(f"{self.url}/{path} is no manifest of a segment: {error}") from error

    def write(self, span: Span, events: Iterable[FeedEvent]) -> Segment:
        """Archive events, durably, and return their segment; who comes second gets that of the first."""
        file = f"{span.path}-{uuid4().hex}.parquet"
        digest, count = sha256(), 0
        remaining = iter(events)
        with (
            self._storage.stage(file) as writer,
            closing(pa.PythonFile(_Sink(writer), mode="w")) as sink,
            pq.ParquetWriter(sink, SCHEMA, compression="zstd") as parquet,
        ):
            while page := list(islice(remaining, _PAGE)):
                table = event_table(page)
                digest.update(_lines(table))
                count += len(page)
                parquet.write_table(table)
        segment = Segment(span, file, count, digest.hexdigest())
        created = self._storage.create(f"{span.path}.json", _encode(segment))
        first = None if created else self.find(span)
        if first is None or first.file == file:  # its own: the answer to its first try got lost
            return segment
        self._storage.delete([file])
        return first

    def read(self, segment: Segment) -> Iterator[FeedEvent]:
        """Yield the events of a segment, by partition and position; Corrupt if it is not what was written."""
        digest, count = sha256(), 0
        for batch in self._batches(segment):
            digest.update(_lines(batch))
            count += batch.num_rows
            for position, text in zip(
                batch.column("position").to_pylist(), batch.column("event").to_pylist(), strict=True
            ):
                yield FeedEvent(position, RunEvent.from_json(text))
        if (count, digest.hexdigest()) != (segment.events, segment.sha256):
            raise Corrupt(
                f"{self.url}/{segment.file} does not hold the {segment.events} events that were archived",
                remedy="Restore the file from a copy: the ledger does not have these events any more.",
            )

    def check(self, segment: Segment) -> None:
        """Read a segment back from storage; Corrupt if it is not what was written."""
        for _ in self.read(segment):
            pass

    def clear(self, segment: Segment) -> None:
        """Delete every other file of a segment; who still writes one will find the manifest, and give up."""
        files = self._storage.entries(segment.span.directory)
        others = [each.path for each in files if each.path.startswith(f"{segment.span.path}-")]
        self._storage.delete([path for path in others if path != segment.file])

    def events(self, span: Span) -> list[RunEvent]:
        """Return the events of a span in the order of their numbers; none if it was not archived."""
        segment = self.find(span)
        found = [] if segment is None else [each.event for each in self.read(segment)]
        return sorted(found, key=lambda event: event.run_seq or 0)

    def _batches(self, segment: Segment) -> Iterator[pa.RecordBatch]:
        folder = self._storage.folder
        source: object
        if folder is None:
            source = io.BytesIO(b"".join(self._storage.stream(segment.file)))
        else:
            source = folder / segment.file
        try:
            with pq.ParquetFile(source) as file:
                yield from file.iter_batches(_PAGE, columns=["position", "event"])
        except (pa.ArrowException, OSError) as error:
            raise Corrupt(f"{self.url}/{segment.file} cannot be read: {error}") from error


def digest_of(events: Iterable[FeedEvent]) -> str:
    """Return the sha256 that a segment of these events has."""
    digest = sha256()
    remaining = iter(events)
    while page := list(islice(remaining, _PAGE)):
        digest.update(_lines(event_table(page)))
    return digest.hexdigest()


def _lines(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Return what a segment's digest is over: each event with its position."""
    positions, texts = (rows.column(name).to_pylist() for name in ("position", "event"))
    return "".join(f"{position} {text}\n" for position, text in zip(positions, texts, strict=True)).encode()


class _Sink(io.RawIOBase):
    """A file for Arrow to write to, of a writer of a storage."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._size = 0

    def writable(self) -> bool:
        """Say that it is there to be written to."""
        return True

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._size

    def write(self, chunk: Any, /) -> int:
        """Hand bytes on."""
        data = bytes(chunk)
        self._writer.write(data)
        self._size += len(data)
        return len(data)
