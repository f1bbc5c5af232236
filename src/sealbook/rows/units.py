"""Reading raw partitions in a task: payloads checked against their seals, or slices of large ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from sealbook.errors import Corrupt, SealbookError
from sealbook.model import PartitionKey, RunId
from sealbook.model.sealed_day import SealedDay
from sealbook.raw import RawMetadata, RawReader, SealedPartition
from sealbook.rows.problems import (
    CorruptMetadata,
    CorruptPayload,
    Defect,
    OtherVersion,
    Problem,
    Unreadable,
)

_CHUNK = 8 * 1024 * 1024
_PAUSES = (0.2, 0.8)
"""Seconds to wait before what could not be read is tried again."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What a task reads of one run: its whole payload. `ordinal` is the caller's number for the run."""

    ordinal: int
    key: PartitionKey
    run_id: RunId
    piece: int = 0


@dataclass(frozen=True, slots=True)
class Slice(Unit):
    """Some lines of a large payload: those that begin at the byte `start` or later, but before `end`."""

    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Digest(Unit):
    """The seal of a large payload, which its slices cannot check."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a unit gave: lines to be parsed, or the problem for which there are none."""

    unit: Unit
    data: bytes = b""
    lines: int | None = None
    """How many they are, if they were counted when they were read."""
    record_count: int | None = None
    """What the seal says; a slice does not ask it."""
    day: SealedDay | None = None
    """The day, where the seal says when that was."""
    problem: Problem | None = None


class UnitReader:
    """Reads units of one schema_version.

    What cannot be read is tried again after the others of the task. If the storage still fails then, so does
    the task, and Spark tries it again, maybe elsewhere; on the last of `tries` the unit is set aside instead.
    """

    def __init__(self, store: RawReader, schema_version: str, tries: int) -> None:
        self._store = store
        self._schema_version = schema_version
        self._tries = tries

    def read_all(self, units: Iterable[Unit], attempt: int) -> Iterator[Reading]:
        """Read units, about in their order; `attempt` counts the tries of this task from 0."""
        for pause in _PAUSES:
            doubtful = []
            for unit, reading in self._read_each(units):
                if isinstance(reading, SealbookError) or _is_missing(reading):
                    doubtful.append(unit)
                else:
                    yield reading
            if not doubtful:
                return
            time.sleep(pause)
            units = doubtful
        for unit, reading in self._read_each(units):
            if not isinstance(reading, SealbookError):
                yield reading
            elif attempt + 1 >= self._tries:
                yield Reading(unit, problem=Unreadable(str(reading)))
            else:
                raise reading

    def _read_each(self, units: Iterable[Unit]) -> Iterator[tuple[Unit, Reading | SealbookError]]:
        def read(unit: Unit) -> tuple[Unit, Reading | SealbookError]:
            try:
                return unit, self._read(unit)
            except SealbookError as error:
                return unit, error
            except Exception as error:  # noqa: BLE001 - whatever it is, it concerns this unit alone (R-VER-3)
                return unit, Reading(unit, problem=Defect.of(error))

        return self._store.each(read, units)

    def _read(self, unit: Unit) -> Reading:
        try:
            sealed = self._store.read(unit.key, unit.run_id)
        except Corrupt as error:
            return Reading(unit, problem=CorruptMetadata(str(error)))
        metadata = sealed.metadata
        if metadata.schema_version != self._schema_version:
            return Reading(unit, problem=OtherVersion(metadata.schema_version))
        if isinstance(unit, Slice):
            return _read_slice(unit, sealed)
        wanted = not isinstance(unit, Digest)
        try:
            data = b"".join(chunk for chunk in sealed.chunks() if wanted)
        except Corrupt:
            return _look_again(unit, sealed, wanted)
        lines = metadata.record_count if wanted else None
        return Reading(unit, data, lines, metadata.record_count, metadata.day)


def _look_again(unit: Unit, sealed: SealedPartition, wanted: bool) -> Reading:
    """Find out in what a payload differs from its seal; nothing is believed that was seen only once."""
    metadata = sealed.metadata
    try:
        size = sealed.size()
    except Corrupt:
        return _corrupt(unit, metadata)
    wanted = wanted and size == metadata.payload_bytes
    digest, data = sha256(), b""
    for start in range(0, size, _CHUNK):
        chunk = sealed.range(start, start + _CHUNK)
        digest.update(chunk)
        data += chunk if wanted else b""
    if (size, digest.hexdigest()) != (metadata.payload_bytes, metadata.payload_sha256):
        return _corrupt(unit, metadata, size, digest.hexdigest())
    return Reading(
        unit, data, record_count=metadata.record_count, day=metadata.day
    )  # only these can be wrong


def _read_slice(unit: Slice, sealed: SealedPartition) -> Reading:
    try:
        return Reading(unit, _lines_of(sealed, unit))
    except Corrupt:
        return _corrupt(unit, sealed.metadata)


def _corrupt(
    unit: Unit, metadata: RawMetadata, size: int | None = None, sha256: str | None = None
) -> Reading:
    """Say that a payload is not what was sealed: it is missing, or has another size or digest."""
    problem = CorruptPayload(metadata.payload_bytes, metadata.payload_sha256, size, sha256)
    return Reading(unit, problem=problem)


def _lines_of(sealed: SealedPartition, unit: Slice) -> bytes:
    """Return the lines of a slice: a line belongs to the slice in which it begins, wherever it ends."""
    data = sealed.range(max(unit.start - 1, 0), unit.end)
    if unit.start:
        # From the byte before: if that is a newline, a line begins right at the start.
        data = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
    if not data or data.endswith(b"\n"):
        return data
    chunks, position = [data], unit.end
    while chunk := sealed.range(position, position + _CHUNK):
        end = chunk.find(b"\n")
        chunks.append(chunk[: end + 1] if end >= 0 else chunk)
        if end >= 0:
            break
        position += len(chunk)
    return b"".join(chunks)


def _is_missing(reading: Reading) -> bool:
    return isinstance(reading.problem, CorruptPayload) and reading.problem.size is None
