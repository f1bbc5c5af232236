"""Files as rows, a piece at a time: CSV, JSON lines and Parquet, packed by gzip or not."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, cast

from sealbook.errors import Permanent, Transient
from sealbook.extract.source import Row
from sealbook.extract.sources.csv_values import Make, makers
from sealbook.extract.sources.files_finding import Expected
from sealbook.extract.sources.files_options import GZIP, CsvForm, Format
from sealbook.extract.sources.records import Way, row_of
from sealbook.model.contract import Contract
from sealbook.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_LINE = 64 * 1024**2
_ROWS_AT_ONCE = 1_024


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the files of a query."""

    storage: Storage
    format: Format
    csv: CsvForm
    columns: Mapping[str, Way]
    contract: Contract
    """By which the text of CSV becomes numbers and booleans."""

    def rows(self, file: Expected) -> Iterator[Row]:
        """Yield the rows of a file in their order; Permanent if it is not what it should be.

        Transient if it changed meanwhile. Nothing stays open when the reader stops early.
        """
        with ExitStack() as stack:
            chunks = stack.enter_context(closing(_checked(self.storage, file)))
            opened: IO[bytes] = stack.enter_context(io.BufferedReader(_Chunks(chunks)))
            if file.path.endswith(GZIP):
                opened = stack.enter_context(cast(IO[bytes], gzip.GzipFile(fileobj=opened)))
            with _readable(file):
                match self.format:
                    case Format.CSV:
                        yield from self._csv(opened, file)
                    case Format.JSONL:
                        yield from self._lines(opened, file)
                    case Format.PARQUET:
                        yield from self._parquet(opened)

    def _csv(self, opened: IO[bytes], file: Expected) -> Iterator[Row]:
        # A mark at the beginning, as Windows writes it, is no part of the first name.
        encoding = "utf-8-sig" if self.csv.encoding.lower() in ("utf-8", "utf8") else self.csv.encoding
        lines = io.TextIOWrapper(opened, encoding, newline="")
        reader = csv.reader(lines, delimiter=self.csv.delimiter, quotechar=self.csv.quote, strict=True)
        names = list(self.csv.names) or next(reader, [])
        taken = self._taken(names, file)
        for cells in filter(None, reader):  # an empty line is none
            if len(cells) != len(names):
                raise Permanent(
                    f"{file.path}, line {reader.line_num}: {len(cells)} values for {len(names)} columns",
                    remedy="Check the delimiter and the quotes, and have the file written anew.",
                )
            yield {
                column: None if cells[place] in self.csv.nulls else make(cells[place])
                for column, place, make in taken
            }

    def _taken(self, names: list[str], file: Expected) -> list[tuple[str, int, Make]]:
        """Return which cells become which columns, and how."""
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise Permanent(f"{file.path}: the column {repeated[0]!r} is there twice")
        wanted: Mapping[str, str] = self.columns or {name: name for name in names}
        absent = sorted(set(wanted.values()) - set(names)) if names else []
        if absent:
            raise Permanent(
                f"{file.path} has no column {absent[0]!r}, but {', '.join(names)}",
                remedy="Correct `columns`, or the delimiter.",
            )
        make = makers(self.contract)
        return [(column, names.index(name), make(column)) for column, name in wanted.items()] if names else []

    def _lines(self, opened: IO[bytes], file: Expected) -> Iterator[Row]:
        while line := opened.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise Permanent(f"{file.path} has a line of more than {_LONGEST_LINE // 1024**2} MB")
            if stripped := line.strip():
                yield row_of(stripped, self.columns) if self.columns else stripped

    def _parquet(self, opened: IO[bytes]) -> Iterator[Row]:
        import pyarrow.parquet as pq

        # Parquet is read from its end: an object is brought here first, and its digest is known by then.
        with TemporaryFile() as whole:
            while chunk := opened.read(1024**2):
                whole.write(chunk)
            whole.seek(0)
            with pq.ParquetFile(whole) as table:
                for batch in table.iter_batches(_ROWS_AT_ONCE):
                    for row in _without_nanoseconds(batch).to_pylist(maps_as_pydicts="strict"):
                        yield self._picked(row)

    def _picked(self, row: dict[str, object]) -> Row:
        if not self.columns:
            return row
        return {column: _inside(row, way) for column, way in self.columns.items()}


def _inside(row: object, way: str) -> object:
    """Return what is at the end of a way; None if there is nothing."""
    if not isinstance(row, dict) or way in row:
        return row[way] if isinstance(row, dict) else None
    first, _, rest = way.partition(".")
    return _inside(row.get(first), rest) if rest else None


def _without_nanoseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose times have microseconds, as a contract's have: digits beyond them are cut off."""
    import pyarrow as pa

    columns = [
        column.cast(pa.timestamp("us", column.type.tz), safe=False)
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns"
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


class _Chunks(io.RawIOBase):
    """Chunks as a file that is read from its beginning to its end."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        room = memoryview(buffer)  # type: ignore[arg-type]  # what a BufferedReader hands over
        if not self._left:
            self._left = memoryview(next(self._chunks, b""))
        number = min(len(room), len(self._left))
        room[:number] = self._left[:number]
        self._left = self._left[number:]
        return number


def _checked(storage: Storage, file: Expected) -> Generator[bytes, None, None]:
    """Yield a file in chunks, and see at its end that it is what was expected."""
    digests = {name: hashlib.new(name) for name in ("sha256", "md5") if getattr(file, name) is not None}
    size = 0
    for chunk in storage.stream(file.path):
        size += len(chunk)
        for digest in digests.values():
            digest.update(chunk)
        if chunk:
            yield chunk
    if file.size is not None and size != file.size:
        raise Transient(f"{file.path} changed while it was read")
    for name, digest in digests.items():
        if digest.hexdigest() != getattr(file, name).lower():
            raise Permanent(
                f"{file.path} is not what its manifest says: its {name} is {digest.hexdigest()}",
                remedy="Have the file delivered anew, with its manifest; then retry the partition.",
            )


@contextmanager
def _readable(file: Expected) -> Iterator[None]:
    """Say of a file that is not of its format which one it is, and what is wrong."""
    import pyarrow as pa

    try:
        yield
    except (
        csv.Error,
        UnicodeDecodeError,
        EOFError,
        gzip.BadGzipFile,
        zlib.error,
        pa.ArrowException,
    ) as error:
        raise Permanent(
            f"{file.path} cannot be read: {error}", remedy="Check its format, and have it written anew."
        ) from error
