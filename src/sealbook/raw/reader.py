"""Reading a sealed partition, with proof that it is what was sealed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice

from sealbook.errors import Corrupt, InvalidInput, NotFound
from sealbook.raw.lines import PayloadDigest
from sealbook.raw.metadata import RawMetadata
from sealbook.storage import Storage


@dataclass(frozen=True, slots=True)
class SealedPartition:
    """A sealed partition: what its seal says, and its payload."""

    metadata: RawMetadata
    path: str
    """Where the payload lies, below the root of the store."""
    root: str
    """The URL of the store."""
    _storage: Storage = field(repr=False, compare=False)

    @property
    def url(self) -> str:
        """Where the payload lies, for a tool that reads it by itself."""
        return f"{self.root}/{self.path}"

    def size(self) -> int:
        """Return how many bytes the payload has in the storage, whatever its seal says."""
        size = self._storage.size(self.path)
        if size is None:
            raise self._missing()
        return size

    def range(self, start: int, end: int | None = None) -> bytes:
        """Return the bytes of the payload from `start` to before `end`, unchecked; less if it is shorter."""
        if start < 0 or (end is not None and end < start):
            raise InvalidInput.of("range", (start, end), "0 <= start <= end")
        size = self.size()
        end = size if end is None else min(end, size)
        return self._storage.get_range(self.path, start, end) if start < end else b""

    def chunks(self) -> Iterator[bytes]:
        """Yield the payload in chunks of some MB; at the end raise Corrupt unless it is what was sealed."""
        digest = PayloadDigest()
        try:
            for chunk in self._storage.stream(self.path):
                digest.update(chunk)
                if digest.bytes > self.metadata.payload_bytes:
                    raise Corrupt(
                        f"{self.path} is longer than the {self.metadata.payload_bytes} bytes sealed"
                    )
                yield chunk
        except NotFound as error:
            raise self._missing() from error
        self._check(digest)

    def payload(self) -> bytes:
        """Return the whole payload, checked."""
        return b"".join(self.chunks())

    def lines(self) -> Iterator[bytes]:
        """Yield the payload line by line without newlines; checked when read to the end, like `chunks`."""
        rest = b""
        for chunk in self.chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
        if rest:
            yield rest

    def lines_at(self, numbers: Collection[int], *, within: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of these numbers, which begin at 1, in the order of the payload.

        No more is read than that needs, and nothing after the first `within` bytes.
        """
        wanted = set(numbers)
        size = 0
        for number, line in enumerate(islice(self.lines(), max(wanted, default=0)), start=1):
            size += len(line) + 1
            if within is not None and size > within:
                return
            if number in wanted:
                yield number, line

    def _missing(self) -> Corrupt:
        return Corrupt(f"{self.path} is missing, though its partition is sealed")

    def _check(self, digest: PayloadDigest) -> None:
        for name, found in (
            ("payload_bytes", digest.bytes),
            ("payload_sha256", digest.sha256),
            ("record_count", digest.records),
        ):
            sealed = getattr(self.metadata, name)
            if found != sealed:
                raise Corrupt(
                    f"{self.path} is not what was sealed: {name} is {found}, the seal says {sealed}"
                )
