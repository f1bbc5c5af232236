"""Reading a sealed partition, with proof that it is what was sealed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sealbook.errors import Corrupt, NotFound
from sealbook.raw.lines import PayloadDigest
from sealbook.raw.metadata import RawMetadata
from sealbook.storage import Storage


@dataclass(frozen=True, slots=True)
class SealedPartition:
    """A sealed partition: what its seal says, and its payload."""

    metadata: RawMetadata
    path: str
    """Where the payload lies, below the root of the store."""
    _storage: Storage = field(repr=False, compare=False)

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
            raise Corrupt(f"{self.path} is missing, though its partition is sealed") from error
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
