"""Verification: artifacts re-read against their load records, and pointers compared with states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet

from sealbook.errors import SealbookError
from sealbook.ledger.pointers import PointerReader
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import StoredArtifact
from sealbook.model.selection import Selection
from sealbook.storage.ahead import ahead
from sealbook.warehouse.encoding import digest_of
from sealbook.warehouse.layout import part_paths
from sealbook.warehouse.store import ArtifactStore

LOAD = "sealbook load"
LOAD_FULL = "sealbook load --full"
REBUILD = "sealbook load --rebuild"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something that is not as the ledger says, of an artifact or a pointer; `remedy` is the way out."""

    key: PartitionKey
    run_id: RunId | None
    field: str
    expected: str
    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Verified:
    """An artifact that was re-read, and every way in which it differs from its load record."""

    artifact: StoredArtifact
    mismatches: tuple[Mismatch, ...]


class Verification:
    """Looks at everything that must be there, and believes nothing that it has not read."""

    def __init__(self, pointers: PointerReader, artifacts: ArtifactStore) -> None:
        self._pointers = pointers
        self._artifacts = artifacts

    def pointers(self, selection: Selection) -> Iterator[Mismatch]:
        """Yield where pointers do not mirror states, all of them compared (R-WH-8)."""
        for each in self._pointers.differences(selection):
            remedy = LOAD if each.noted else LOAD_FULL
            yield Mismatch(each.key, None, f"pointer {each.field}", each.state, each.pointer, remedy)

    def artifacts(self, selection: Selection) -> Iterator[Verified]:
        """Re-read every artifact whose files must be there, several at once."""
        artifacts = self._pointers.stored_artifacts(selection)
        yield from ahead(self._verify, artifacts, size=lambda each: each.record.bytes)

    def _verify(self, artifact: StoredArtifact) -> Verified:
        try:
            return Verified(artifact, tuple(self._mismatches(artifact)))
        except SealbookError as error:  # of the storage: this one could not be read, others may
            return Verified(artifact, (_mismatch(artifact, "artifact", "readable", str(error)),))

    def _mismatches(self, artifact: StoredArtifact) -> Iterator[Mismatch]:
        record, expected = artifact.record, part_paths(artifact)
        sizes = self._artifacts.sizes(artifact.location)
        missing = [path.rpartition("/")[2] for path in expected if path not in sizes]
        if missing:
            found = f"{', '.join(missing)} missing"
            yield _mismatch(artifact, "parts", f"{artifact.parts} part files", found)
            return
        size = sum(sizes[path] for path in expected)
        if size != record.bytes:
            yield _mismatch(artifact, "bytes", str(record.bytes), str(size))
        digests, rows = [], 0
        for path in expected:
            data = self._artifacts.get(path) or b""
            digests.append(sha256(data).hexdigest())
            rows += _rows(data)
        if digest_of(digests) != record.digest:
            yield _mismatch(artifact, "digest", record.digest, digest_of(digests))
        if rows != record.record_count:
            yield _mismatch(artifact, "record_count", str(record.record_count), str(rows))


def _rows(data: bytes) -> int:
    """Count the rows of a part by reading them all; one that cannot be read has none."""
    try:
        # Not `read_table`, whose threads may let go of the data when Python has ended, which ends badly.
        table = pyarrow.parquet.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    except (pa.ArrowException, OSError):
        return 0
    return int(table.num_rows)


def _mismatch(artifact: StoredArtifact, field: str, expected: str, found: str) -> Mismatch:
    return Mismatch(artifact.key, artifact.record.run_id, field, expected, found, REBUILD)
