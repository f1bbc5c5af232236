"""Rows to JSON lines and back to counts: what is written is counted and hashed as it goes by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice

import msgspec

from sealbook.errors import InvalidInput

Row = Mapping[str, object] | bytes
"""One row: an object to encode, or a line that is encoded already, without its newline."""

# Large enough that the cost of a call vanishes, small enough that rows of 100 kB stay within 30 MB.
_BATCH = 256


class PayloadDigest:
    """Bytes, lines and sha256 of a payload, added up chunk by chunk."""

    def __init__(self) -> None:
        self.bytes = 0
        self._newlines = 0
        self._open_line = False
        self._hash = sha256()

    def update(self, chunk: bytes) -> None:
        """Take in the next chunk."""
        if chunk:
            self.bytes += len(chunk)
            self._newlines += chunk.count(b"\n")
            self._open_line = not chunk.endswith(b"\n")
            self._hash.update(chunk)

    @property
    def records(self) -> int:
        """How many lines; a last one without its newline counts."""
        return self._newlines + self._open_line

    @property
    def sha256(self) -> str:
        """The digest of all chunks so far."""
        return self._hash.hexdigest()


def encode_rows(rows: Iterable[Row]) -> Iterator[bytes]:
    """Encode rows as JSON lines, some hundreds at a time, in the order given."""
    rest = iter(rows)
    first = 1
    while batch := list(islice(rest, _BATCH)):
        yield _encode_batch(batch, first)
        first += len(batch)


def _encode_batch(batch: list[Row], first: int) -> bytes:
    try:
        lines = _ENCODER.encode_lines([row if type(row) is dict else _as_encodable(row) for row in batch])
    except (TypeError, ValueError, RecursionError):
        lines = b""
    # A newline inside a row would make one record look like two; JSON escapes it, an encoded line may not.
    if lines.count(b"\n") != len(batch):
        _refuse_bad_row(batch, first)
    return lines


def _refuse_bad_row(batch: list[Row], first: int) -> None:
    """Find the row that spoils its batch, and name it."""
    for number, row in enumerate(batch, start=first):
        field = f"row {number}"
        try:
            line = _ENCODER.encode(_as_encodable(row))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"{field} cannot be written as JSON: {error}", field=field, value=row
            ) from error
        if b"\n" in line:
            raise InvalidInput.of(field, row, "one line, without a newline in it")


def _as_encodable(row: object) -> object:
    if isinstance(row, bytes):
        return msgspec.Raw(row)
    if isinstance(row, Mapping):
        return dict(row)
    raise TypeError(f"{type(row).__name__} is neither a mapping nor an encoded line")


def _encode_other(value: object) -> object:
    """Encode what msgspec does not know: mappings and text of other classes than dict and str."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_other)
