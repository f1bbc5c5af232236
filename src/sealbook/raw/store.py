"""The raw store: write, seal and read sealed partitions, on a folder or an object store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

from sealbook.errors import InvalidInput, NotFound
from sealbook.model import PartitionKey, RunId
from sealbook.model.selection import Selection
from sealbook.raw.layout import METADATA, RunPaths, customer_of, key_prefix, parse_run, query_prefix
from sealbook.raw.lines import Row
from sealbook.raw.metadata import RawMetadata
from sealbook.raw.reader import SealedPartition
from sealbook.raw.sealing import Payload, Sealer, read_seal
from sealbook.storage import Storage, open_storage

_SEAL = f"/{METADATA}"
_LISTINGS = 16


EVERYTHING = Selection()


class SealedRun(NamedTuple):
    """A sealed run of a partition, and the bytes that its payload has: 0 if it is missing."""

    key: PartitionKey
    run_id: RunId
    payload_bytes: int


class RawReader:
    """Sealed raw partitions below one root, to be read. Made by `open`; pickles as its URL, for workers."""

    def __init__(self, url: str, storage: Storage, options: Mapping[str, str]) -> None:
        self.url = url
        self._storage = storage
        self._options = options

    @classmethod
    def open(cls, url: str | Path, options: Mapping[str, str] | None = None) -> Self:
        """Open the store at a folder (made if need be), `s3://bucket/prefix`, `gs://…` or `az://…`.

        Credentials, region and endpoint come from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`); `options`
        are settings of the storage by obstore's names, and go along when the store is pickled.
        """
        chosen = dict(options or {})
        absolute, storage = open_storage("raw store", str(url), chosen)
        return cls(absolute, storage, chosen)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self).open, (self.url, self._options)

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that the store is; None for an object store."""
        return self._storage.folder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def read(self, key: PartitionKey, run_id: str) -> SealedPartition:
        """Return a sealed run, to stream or to read whole; NotFound when it is not sealed."""
        payload = RunPaths(key, RunId(run_id)).payload
        return SealedPartition(self.metadata(key, run_id), payload, self._storage)

    def metadata(self, key: PartitionKey, run_id: str) -> RawMetadata:
        """Return what the seal of a run says; NotFound when it is not sealed."""
        run = RunPaths(key, RunId(run_id))
        metadata = read_seal(self._storage, run)
        if metadata is None:
            raise NotFound(f"{run} is not sealed in {self.url}", remedy="`sealbook raw list` shows what is.")
        return metadata

    def is_sealed(self, key: PartitionKey, run_id: str) -> bool:
        """Say whether a run is sealed, without reading what its seal says."""
        return self._storage.size(RunPaths(key, RunId(run_id)).metadata) is not None

    def runs(self, key: PartitionKey) -> list[RunId]:
        """List the sealed runs of a partition, oldest first."""
        return [each.run_id for each in self._seals_below(key_prefix(key))]

    def sealed(self, selection: Selection = EVERYTHING) -> Iterator[SealedRun]:
        """Yield the sealed runs that are chosen, in the order of keys and then of runs.

        Costs one listing for each customer and query named, whatever the number of partitions, or one for
        each key that is named; reads no metadata.
        """
        found = self._seals_below_each(self._directories(selection))
        return (
            each
            for each in found
            if selection.has_day(each.key.logical_date) and selection.has_run(each.run_id)
        )

    def payload_url(self, key: PartitionKey, run_id: str) -> str:
        """Return where the payload of a run lies, for a tool that reads it by itself."""
        return f"{self.url}/{RunPaths(key, RunId(run_id)).payload}"

    def payload_size(self, key: PartitionKey, run_id: str) -> int:
        """Return how many bytes the payload of a run has in the storage, whatever its seal says."""
        run = RunPaths(key, RunId(run_id))
        size = self._storage.size(run.payload)
        if size is None:
            raise NotFound(f"{run} has no payload in {self.url}")
        return size

    def payload_range(self, key: PartitionKey, run_id: str, start: int, end: int | None = None) -> bytes:
        """Return the bytes of a payload from `start` to before `end`, unchecked; less where it is shorter."""
        if start < 0 or (end is not None and end < start):
            raise InvalidInput.of("range", (start, end), "0 <= start <= end")
        size = self.payload_size(key, run_id)
        end = size if end is None else min(end, size)
        if start >= end:
            return b""
        return self._storage.get_range(RunPaths(key, RunId(run_id)).payload, start, end)

    def _directories(self, selection: Selection) -> Iterator[str]:
        """Yield the directories that hold what is chosen, in the order of keys."""
        if selection.keys:
            yield from map(key_prefix, sorted(selection.keys))
            return
        sources = self._storage.directories() if selection.source is None else sorted(selection.source)
        queries = [None] if selection.queries is None else sorted(selection.queries)
        for source in sources:
            for customer_id in self._customers(source, selection.customers):
                for query_name in queries:
                    yield query_prefix(source, customer_id, query_name)

    def _customers(self, source: str, wanted: Sequence[str] | None) -> list[str]:
        if wanted is not None:
            return sorted(wanted)
        return [name for name in map(customer_of, self._storage.directories(source)) if name is not None]

    def _seals_below_each(self, directories: Iterable[str]) -> Iterator[SealedRun]:
        """List directory after directory, several at once: a listing is mostly a wait for the storage."""
        rest = iter(directories)
        with ThreadPoolExecutor(_LISTINGS) as pool:
            while group := list(islice(rest, _LISTINGS)):
                for seals in pool.map(self._seals_below, group):
                    yield from seals

    def _seals_below(self, directory: str) -> list[SealedRun]:
        """List the sealed runs below a directory, in order: paths sort as keys do, since / sorts first."""
        found = []
        sizes = self._storage.sizes(directory)
        for path in sizes:
            if path.endswith(_SEAL):
                try:
                    run = parse_run(path.removesuffix(_SEAL))
                except InvalidInput:
                    continue  # a stray file of somebody else's: what has no key is no partition
                found.append(SealedRun(run.key, run.run_id, sizes.get(run.payload, 0)))
        return found


class RawStore(RawReader):
    """Raw partitions below one root, to be written and read: the one who writes is an extractor."""

    def __init__(self, url: str, storage: Storage, options: Mapping[str, str]) -> None:
        super().__init__(url, storage, options)
        self._sealer = Sealer(storage)

    def write(self, key: PartitionKey, run_id: str, rows: Iterable[Row]) -> Payload:
        """Write rows as the payload of a run, in their order and at any length, ready to be sealed.

        A row is a mapping, or bytes: a line that is encoded already. When the run is sealed already, raise
        AlreadySealed before a row is taken. What a crash of the same run left unsealed is replaced.
        """
        return self._sealer.write(RunPaths(key, RunId(run_id)), rows)

    def seal(
        self,
        key: PartitionKey,
        run_id: str,
        payload: Payload,
        *,
        schema_version: str,
        query_hash: str,
        extracted_at: datetime,
        api_version: str | None = None,
    ) -> RawMetadata:
        """Seal a written payload for good; of racing writers one does, the others get AlreadySealed.

        Safe to call again with the same payload, after a Transient error for one.
        """
        metadata = RawMetadata(
            source=key.source,
            customer_id=key.customer_id,
            query_name=key.query_name,
            logical_date=key.logical_date,
            run_id=RunId(run_id),
            extracted_at=extracted_at,
            schema_version=schema_version,
            record_count=payload.record_count,
            api_version=api_version,
            query_hash=query_hash,
            payload_bytes=payload.payload_bytes,
            payload_sha256=payload.payload_sha256,
            write_id=payload.write_id,
        )
        return self._sealer.seal(RunPaths(key, RunId(run_id)), payload, metadata)
