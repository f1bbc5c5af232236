"""The raw store: write, seal and read sealed partitions, on a folder or an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Self

from sealbook.errors import Corrupt, NotFound
from sealbook.model import PartitionKey, RunId
from sealbook.model.selection import Selection
from sealbook.raw.layout import RunName, RunPaths, key_prefix
from sealbook.raw.leftovers import Leftover, find_leftovers
from sealbook.raw.lines import Row
from sealbook.raw.listing import RunFiles, list_runs, list_runs_below
from sealbook.raw.metadata import RawMetadata
from sealbook.raw.reader import SealedPartition
from sealbook.raw.sealing import Payload, Sealer, read_seal
from sealbook.storage import Storage, open_storage
from sealbook.storage.ahead import Done, Item

EVERYTHING = Selection()


class SealedRun(NamedTuple):
    """A sealed run of a partition, and the bytes that its payload has: 0 if it is missing."""

    key: PartitionKey
    run_id: RunId
    payload_bytes: int


class RawReader:
    """Sealed raw partitions below one root, to be read. Made by `open`; pickles as its URL, for workers."""

    _writes = False

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

    def each(self, work: Callable[[Item], Done], items: Iterable[Item]) -> Iterator[Done]:
        """Do what reads this store for each item, in order; on an object store many at once."""
        return self._storage.each(work, items)

    def check(self) -> None:
        """Ask the storage once whether it is there and can be used; raise what is wrong with it."""
        self._storage.check(writing=self._writes)

    def read(self, key: PartitionKey, run_id: str) -> SealedPartition:
        """Return a sealed run, to stream or to read whole; NotFound when it is not sealed."""
        metadata = self.metadata(key, run_id)
        path = RunPaths(key, metadata.run_id).payload(metadata.payload_name)
        return SealedPartition(metadata, path, self.url, self._storage)

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
        return [each.run.run_id for each in list_runs_below(self._storage, key_prefix(key)) if each.is_sealed]

    def sealed(
        self, selection: Selection = EVERYTHING, *, besides: Iterable[RunName] = ()
    ) -> Iterator[SealedRun]:
        """Yield the sealed runs that are chosen, in the order of keys and then of runs.

        Runs that are named as `besides`, in the same order, are left out without a look at them.

        Costs one listing for each customer and query named, whatever the number of partitions, or one for
        each key that is named; reads no metadata but of runs that have several payloads.
        """
        for files in list_runs(self._storage, selection, besides):
            if files.is_sealed:
                yield SealedRun(files.run.key, files.run.run_id, self._payload_bytes(files))

    def leftovers(self, selection: Selection = EVERYTHING, *, age: timedelta) -> Iterator[Leftover]:
        """Yield the files that no seal names and that are so old that no write can be at work on them."""
        return find_leftovers(self._storage, selection, age)

    def _payload_bytes(self, files: RunFiles) -> int:
        names = files.payloads
        if len(names) > 1:
            try:
                seal = read_seal(self._storage, files.run)
            except Corrupt:
                return 0  # whoever reads it will say what is wrong
            names = [name for name in names if seal is not None and name == seal.payload_name]
        return sum(files.files[name].size for name in names)


class RawStore(RawReader):
    """Raw partitions below one root, to be written and read: the one who writes is an extractor."""

    _writes = True

    def __init__(self, url: str, storage: Storage, options: Mapping[str, str]) -> None:
        super().__init__(url, storage, options)
        self._sealer = Sealer(storage)

    def write(self, key: PartitionKey, run_id: str, rows: Iterable[Row]) -> Payload:
        """Write rows as the payload of a run, in their order and at any length, ready to be sealed.

        A row is a mapping, or bytes: a line that is encoded already. Nothing that is there is touched: each
        write has a file of its own. Whether the run is sealed is asked by `is_sealed`, or told by `seal`.
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
        extra: Mapping[str, object] | None = None,
    ) -> RawMetadata:
        """Seal a written payload for good; of racing writers one does, the others get AlreadySealed.

        Safe to call again with the same payload, after a Transient error for one. `extra` are further fields
        of its metadata, as JSON has them.
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
            payload_name=payload.name,
            payload_bytes=payload.payload_bytes,
            payload_sha256=payload.payload_sha256,
            extra=extra or {},
        )
        return self._sealer.seal(RunPaths(key, RunId(run_id)), payload, metadata)

    def discard(self, payloads: Iterable[Payload]) -> None:
        """Remove payloads that nobody will seal, without a seal having been tried: their stream broke."""
        self._sealer.discard(payloads)

    def remove(self, leftovers: Iterable[Leftover]) -> None:
        """Remove leftovers; one that is gone already is no error."""
        self._storage.delete([each.path for each in leftovers])
