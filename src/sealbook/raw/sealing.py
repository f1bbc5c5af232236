"""How a payload gets sealed so that the seal never disagrees with it, whoever races and whoever dies.

Each write has a payload file of its own, whose name no other write has. The seal is a create-only put that
names one of them. So there is nothing to replace, to finish or to agree upon: of all writers one gets its
seal in, with its own payload, and what the others wrote is named by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from sealbook.clock import utc_now
from sealbook.errors import AlreadySealed, Corrupt, InvalidInput, Permanent, Transient
from sealbook.model import PartitionKey, RunId
from sealbook.raw.layout import RunPaths, payload_name
from sealbook.raw.lines import PayloadDigest, Row, encode_rows
from sealbook.raw.metadata import RawMetadata
from sealbook.storage import Storage, reported

LONGEST_WRITE = timedelta(days=1)
"""From the begin of a write to its seal. What is older and not sealed never will be."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Rows that were written whole, but are not sealed: hand it to `seal`."""

    key: PartitionKey
    run_id: RunId
    name: str
    begun_at: datetime
    record_count: int
    payload_bytes: int
    payload_sha256: str


class Sealer:
    """The writing half of a raw store."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def write(self, run: RunPaths, rows: Iterable[Row]) -> Payload:
        """Write the rows under a name of their own."""
        begun_at = utc_now()
        name = payload_name(uuid4().hex)
        digest = PayloadDigest()
        with self._storage.stage(run.payload(name)) as file:
            for chunk in encode_rows(rows):
                digest.update(chunk)
                file.write(chunk)
        return Payload(
            run.key, run.run_id, name, begun_at,
            record_count=digest.records,
            payload_bytes=digest.bytes,
            payload_sha256=digest.sha256,
        )  # fmt: skip

    def seal(self, run: RunPaths, payload: Payload, metadata: RawMetadata) -> RawMetadata:
        """Seal a payload, or raise AlreadySealed when a rival has; asked again, return the same seal."""
        if (payload.key, payload.run_id) != (run.key, run.run_id):
            raise InvalidInput.of("payload", f"{payload.key} run {payload.run_id}", f"a payload of {run}")
        if utc_now() - payload.begun_at > LONGEST_WRITE:
            raise Permanent(
                f"the payload of {run} was begun at {payload.begun_at:%Y-%m-%d %H:%M} UTC, too long ago to be"
                " sealed: a clean-up may have removed it",
                remedy="Write it again.",
            )
        sealed = metadata
        if not self._storage.create(run.metadata, metadata.to_json()):
            sealed = self._standing(run)
        self._storage.sync([run.directory])
        if sealed.payload_name != payload.name:
            with reported(f"{run.payload(payload.name)} is not needed, but may be left over"):
                self._storage.delete([run.payload(payload.name)])
            raise already_sealed(run)
        return sealed

    def discard(self, payloads: Iterable[Payload]) -> None:
        """Remove payloads that nobody will seal; where that fails they are leftovers."""
        if paths := [RunPaths(each.key, each.run_id).payload(each.name) for each in payloads]:
            with reported(f"{', '.join(paths)} will not be sealed, but may be left over"):
                self._storage.delete(paths)

    def _standing(self, run: RunPaths) -> RawMetadata:
        """Return the seal that was there first: a rival's, or our own, if only its answer was lost."""
        sealed = read_seal(self._storage, run)
        if sealed is None:
            raise Transient(
                f"{run}: the storage reported a rival's seal, but shows none",
                remedy="Seal the same payload again.",
            )
        return sealed


def read_seal(storage: Storage, run: RunPaths) -> RawMetadata | None:
    """Return what the seal of a run says; None when it has none."""
    data = storage.get(run.metadata)
    if data is None:
        return None
    metadata = RawMetadata.from_json(data, run.metadata)
    if not metadata.is_of(run.key):
        raise Corrupt(f"{run.metadata} does not agree with its path: it says partition {metadata.key}")
    if metadata.run_id != run.run_id:
        raise Corrupt(f"{run.metadata} does not agree with its path: it says run_id {metadata.run_id}")
    return metadata


def already_sealed(run: RunPaths) -> AlreadySealed:
    """Say that a run is sealed, and what to do instead."""
    return AlreadySealed(
        f"{run} is sealed already", remedy="Read it as it is, or extract it again as a new run."
    )
