"""The raw store: write, seal and read sealed partitions, on a folder or an object store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from itertools import islice
from pathlib import Path

from sealbook.errors import InvalidInput, NotFound
from sealbook.model import PartitionKey, RunId
from sealbook.model.keys import check_customer_id, check_name
from sealbook.raw.layout import METADATA, RunPaths, customer_of, key_prefix, parse_run, query_prefix
from sealbook.raw.lines import Row
from sealbook.raw.metadata import RawMetadata
from sealbook.raw.reader import SealedPartition
from sealbook.raw.sealing import Payload, Sealer
from sealbook.storage import Medium, open_medium

_SEAL = f"/{METADATA}"
_LISTINGS = 16


class RawStore:
    """Raw partitions below one root. Made by `RawStore.open`; pickles as its URL, for use in workers."""

    def __init__(self, url: str, medium: Medium, options: Mapping[str, str]) -> None:
        self.url = url
        self._medium = medium
        self._options = options
        self._sealer = Sealer(medium)

    @classmethod
    def open(cls, url: str | Path, options: Mapping[str, str] | None = None) -> RawStore:
        """Open the store at a folder (made if need be), `s3://bucket/prefix`, `gs://…` or `az://…`.

        Credentials, region and endpoint come from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`); `options`
        are settings of the storage by obstore's names, and go along when the store is pickled.
        """
        chosen = dict(options or {})
        absolute, medium = open_medium("raw store", str(url), chosen)
        return cls(absolute, medium, chosen)

    def __reduce__(self) -> tuple[object, ...]:
        return RawStore.open, (self.url, self._options)

    def __repr__(self) -> str:
        return f"RawStore({self.url!r})"

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

    def read(self, key: PartitionKey, run_id: str) -> SealedPartition:
        """Return a sealed run, to stream or to read whole; NotFound when it is not sealed."""
        return SealedPartition(self.metadata(key, run_id), RunPaths(key, RunId(run_id)).payload, self._medium)

    def metadata(self, key: PartitionKey, run_id: str) -> RawMetadata:
        """Return what the seal of a run says; NotFound when it is not sealed."""
        run = RunPaths(key, RunId(run_id))
        metadata = self._sealer.sealed(run)
        if metadata is None:
            raise NotFound(f"{run} is not sealed in {self.url}", remedy="`sealbook raw list` shows what is.")
        return metadata

    def is_sealed(self, key: PartitionKey, run_id: str) -> bool:
        """Say whether a run is sealed, without reading what its seal says."""
        return self._medium.size(RunPaths(key, RunId(run_id)).metadata) is not None

    def runs(self, key: PartitionKey) -> list[RunId]:
        """List the sealed runs of a partition, oldest first."""
        return [run_id for _, run_id, _ in self._seals_below(key_prefix(key))]

    def sealed(
        self,
        *,
        source: str | None = None,
        query_name: str | None = None,
        customers: Iterable[str] | None = None,
        since: date | None = None,
        until: date | None = None,
    ) -> Iterator[tuple[PartitionKey, RunId]]:
        """Yield the sealed runs of those sources, queries, customers and days (both ends included), in order.

        Costs one listing for each customer, whatever the number of partitions, and reads no metadata.
        """
        found = self.sealed_sizes(
            source=source, query_name=query_name, customers=customers, since=since, until=until
        )
        return ((key, run_id) for key, run_id, _ in found)

    def sealed_sizes(
        self,
        *,
        source: str | None = None,
        query_name: str | None = None,
        customers: Iterable[str] | None = None,
        since: date | None = None,
        until: date | None = None,
    ) -> Iterator[tuple[PartitionKey, RunId, int]]:
        """Yield the same runs at the same cost, with the bytes that each payload has: 0 if it is missing."""
        if source is not None:
            check_name("source", source)
        if query_name is not None:
            check_name("query_name", query_name)
        wanted = None if customers is None else sorted(set(customers))
        directories = (
            query_prefix(name, customer_id, query_name)
            for name in (self._medium.directories() if source is None else [source])
            for customer_id in self._customers(name, wanted)
        )
        return (
            found
            for found in self._seals_below_each(directories)
            if (since is None or found[0].logical_date >= since)
            and (until is None or found[0].logical_date <= until)
        )

    def payload_url(self, key: PartitionKey, run_id: str) -> str:
        """Return where the payload of a run lies, for a tool that reads it by itself."""
        return f"{self.url}/{RunPaths(key, RunId(run_id)).payload}"

    def payload_size(self, key: PartitionKey, run_id: str) -> int:
        """Return how many bytes the payload of a run has in the storage, whatever its seal says."""
        run = RunPaths(key, RunId(run_id))
        size = self._medium.size(run.payload)
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
        return self._medium.get_range(RunPaths(key, RunId(run_id)).payload, start, end)

    def _customers(self, source: str, wanted: list[str] | None) -> list[str]:
        if wanted is None:
            return [name for name in map(customer_of, self._medium.directories(source)) if name is not None]
        for customer_id in wanted:
            check_customer_id(source, customer_id)
        return wanted

    def _seals_below_each(self, directories: Iterable[str]) -> Iterator[tuple[PartitionKey, RunId, int]]:
        """List directory after directory, several at once: a listing is mostly a wait for the storage."""
        rest = iter(directories)
        with ThreadPoolExecutor(_LISTINGS) as pool:
            while group := list(islice(rest, _LISTINGS)):
                for seals in pool.map(self._seals_below, group):
                    yield from seals

    def _seals_below(self, directory: str) -> list[tuple[PartitionKey, RunId, int]]:
        """List the sealed runs below a directory, in order: paths sort as keys do, since / sorts first."""
        found = []
        sizes = self._medium.sizes(directory)
        for path in sizes:
            if path.endswith(_SEAL):
                try:
                    run = parse_run(path.removesuffix(_SEAL))
                except InvalidInput:
                    continue  # a stray file of somebody else's: what has no key is no partition
                found.append((run.key, run.run_id, sizes.get(run.payload, 0)))
        return found
