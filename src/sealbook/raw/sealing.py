"""How a payload gets sealed so that the seal never disagrees with it, whoever races and whoever dies.

No storage writes two objects at once, and `payload.jsonl` has a fixed name: if writers of the same run wrote
it freely, one could replace it just before or after another's seal. So:

1. Each write goes to a staged name of its own.
2. A seal begins with the *intent*: a create-only put of the coming metadata, which names one staged payload.
   Of all writers one gets it in, and with that everything is decided.
3. Whoever holds the intent (its author, a rival, a later retry) and finds no seal *after* reading it carries
   it out: the staged payload becomes `payload.jsonl`, then the intent's bytes become `metadata.json`.
4. Once sealed, the intent and all that is staged are deleted; never before.

Why it holds: an intent is deleted only when the seal exists. Who reads an intent and afterwards finds no seal
knows that no intent was ever deleted, hence that there has only been this one. So everybody who writes
`payload.jsonl` or `metadata.json` writes the same bytes, however late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from sealbook.errors import AlreadySealed, Corrupt, InvalidInput, Permanent, Transient
from sealbook.model import PartitionKey, RunId
from sealbook.raw.layout import RunPaths
from sealbook.raw.lines import PayloadDigest, Row, encode_rows
from sealbook.raw.metadata import RawMetadata
from sealbook.storage import Storage, reported


@dataclass(frozen=True, slots=True)
class Payload:
    """Rows that were written whole, but are not sealed: hand it to `seal`."""

    key: PartitionKey
    run_id: RunId
    write_id: str
    record_count: int
    payload_bytes: int
    payload_sha256: str
    leftovers: tuple[str, ...] = field(default=(), repr=False)
    """Paths that earlier writes of the run left behind, to be deleted once the run is sealed."""


class Sealer:
    """The writing half of a raw store."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def write(self, run: RunPaths, rows: Iterable[Row]) -> Payload:
        """Stage the rows; if the run is sealed already, raise AlreadySealed before the first row is taken."""
        leftovers = self._leftovers(run)
        write_id = uuid4().hex
        digest = PayloadDigest()
        with self._storage.stage(run.staged(write_id)) as file:
            for chunk in encode_rows(rows):
                digest.update(chunk)
                self._check_size(run, digest.bytes)
                file.write(chunk)
        return Payload(
            run.key, run.run_id, write_id,
            record_count=digest.records,
            payload_bytes=digest.bytes,
            payload_sha256=digest.sha256,
            leftovers=leftovers,
        )  # fmt: skip

    def seal(self, run: RunPaths, payload: Payload, metadata: RawMetadata) -> RawMetadata:
        """Seal a payload, or raise AlreadySealed when a rival has; asked again, return the same seal."""
        if (payload.key, payload.run_id) != (run.key, run.run_id):
            raise InvalidInput.of("payload", f"{payload.key} run {payload.run_id}", f"a payload of {run}")
        if self._storage.create(run.intent, metadata.to_json()):
            sealed = self._carry_out(run, metadata)
        else:
            sealed = self._carry_out(run, self._intent(run))
        self._tidy(run, [run.intent, run.staged(payload.write_id), *payload.leftovers])
        if sealed.write_id != payload.write_id:
            raise already_sealed(run)
        return sealed

    def _leftovers(self, run: RunPaths) -> tuple[str, ...]:
        """List what earlier writes of the run left behind, once sure that none of them sealed it."""
        names = self._storage.names(run.directory)
        leftovers = tuple(name for name in names if name not in (run.payload, run.metadata))
        if run.intent in leftovers:
            self._carry_out(run, self._intent(run))
        elif run.metadata not in names:
            return leftovers
        self._tidy(run, leftovers)
        raise already_sealed(run)

    def _carry_out(self, run: RunPaths, intent: RawMetadata | None) -> RawMetadata:
        """Finish the seal that an intent decided, if nobody has yet, and return the seal that stands."""
        # Not before the intent was read: the proof above rests on this order.
        sealed = read_seal(self._storage, run)
        if sealed is None and intent is not None:
            self._place_payload(run, intent)
            created = self._storage.confirm(run.intent, run.metadata, intent.to_json())
            sealed = intent if created else read_seal(self._storage, run)
        if sealed is None:
            raise Transient(
                f"{run}: the storage reported a rival's seal, but shows none",
                remedy="Seal the same payload again.",
            )
        self._storage.sync([run.directory])
        return sealed

    def _place_payload(self, run: RunPaths, intent: RawMetadata) -> None:
        if intent.write_id is None:
            raise _unusable(run, "it does not name a staged payload")
        if self._storage.replace(run.staged(intent.write_id), run.payload):
            return
        # Somebody else has carried the intent out up to here, or nobody ever can.
        if self._storage.size(run.payload) != intent.payload_bytes:
            raise _unusable(run, "the staged payload it names is gone")

    def _intent(self, run: RunPaths) -> RawMetadata | None:
        try:
            return _read_metadata(self._storage, run, run.intent)
        except Corrupt as error:
            raise _unusable(run, str(error)) from error

    def _tidy(self, run: RunPaths, paths: Sequence[str]) -> None:
        if paths:
            with reported(f"{run} is sealed, but what is no longer needed may be left over"):
                self._storage.delete(paths)

    def _check_size(self, run: RunPaths, size: int) -> None:
        if self._storage.largest is not None and size > self._storage.largest:
            raise Permanent(
                f"the payload of {run} is over {self._storage.largest} bytes, more than the storage can copy",
                remedy="Split the query so that a day has fewer rows.",
            )


def read_seal(storage: Storage, run: RunPaths) -> RawMetadata | None:
    """Return what the seal of a run says; None when it has none."""
    return _read_metadata(storage, run, run.metadata)


def _read_metadata(storage: Storage, run: RunPaths, path: str) -> RawMetadata | None:
    data = storage.get(path)
    if data is None:
        return None
    metadata = RawMetadata.from_json(data, path)
    if not metadata.is_of(run.key):
        raise Corrupt(f"{path} does not agree with its path: it says partition {metadata.key}")
    if metadata.run_id != run.run_id:
        raise Corrupt(f"{path} does not agree with its path: it says run_id {metadata.run_id}")
    return metadata


def already_sealed(run: RunPaths) -> AlreadySealed:
    """Say that a run is sealed, and what to do instead."""
    return AlreadySealed(
        f"{run} is sealed already", remedy="Read it as it is, or extract it again as a new run."
    )


def _unusable(run: RunPaths, why: str) -> Corrupt:
    return Corrupt(
        f"{run.intent} cannot be carried out: {why}",
        remedy="If no extraction of this run is at work, delete the file and run it again.",
    )
