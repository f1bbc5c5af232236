"""What a load plans and stages: artifacts, their files and their records.

What comes by the hundred thousand is a tuple, which is several times quicker to make than a dataclass; its
first four fields are those of the key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.drift import Drift
from sealbook.model.keys import PartitionKey, RunId, check_key
from sealbook.model.publication import Published
from sealbook.model.verdict import check_count, check_text

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Action(StrEnum):
    """What a load must do about a partition (R-WH-1)."""

    LOAD = "load"
    REPLACE = "replace"
    HIDE = "hide"


FIRST_FORMAT, FORMAT = 1, 2
"""How the bytes of an artifact are made: 2 says in each part whose rows it holds, 1 did not."""


class PlanItem(NamedTuple):
    """One difference between state and pointers, and what resolves it.

    `run_id`, `schema_version` and `record_count` are the authority's: what to load. A hide has none.
    `published_run_id` is the run that the pointer names now, `earlier` what this very run was loaded as if it
    was loaded before, and `copy` the copy to stage if its files are not there.
    """

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    action: Action
    run_id: RunId | None
    schema_version: str | None
    record_count: int | None
    published_run_id: RunId | None
    copy: int
    earlier: StoredArtifact | None = None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return PartitionKey(*self[:4])


@dataclass(frozen=True, slots=True)
class Artifact:
    """The identity of an artifact: the run of a partition that it holds, as its schema_version has it."""

    key: PartitionKey
    run_id: RunId
    schema_version: str

    def __post_init__(self) -> None:
        check_key(self.key)
        object.__setattr__(self, "run_id", RunId(self.run_id))
        check_text("schema_version", self.schema_version)

    def __str__(self) -> str:
        return f"{self.key} run {self.run_id} (schema_version {self.schema_version})"


@dataclass(frozen=True, slots=True)
class Staged:
    """An artifact that is wholly written and may be published.

    `location` is relative to the warehouse; below it lie `parts` files of `bytes` bytes in all; `digest` is a
    sha256 over them. The names of the files carry `copy`, and the digest of each: that of a single part is
    the artifact's, those of several are `part_digests`. `files_run_id` is the run whose files they are, where
    they are those of another run with the same payload. `drift` is how the run differs from the one that it
    is to replace.
    """

    artifact: Artifact
    record_count: int
    bytes: int
    digest: str
    location: str
    parts: int = 1
    format: int = FORMAT
    copy: int = 0
    part_digests: tuple[str, ...] | None = None
    files_run_id: RunId | None = None
    drift: Drift | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.artifact, Artifact):
            raise InvalidInput.of("artifact", self.artifact, "an Artifact")
        check_count("record_count", self.record_count)
        check_count("bytes", self.bytes)
        _check_digest("digest", self.digest)
        check_text("location", self.location)
        check_count("parts", self.parts, least=1)
        if self.format not in (FIRST_FORMAT, FORMAT):
            raise InvalidInput.of("format", self.format, f"{FIRST_FORMAT} or {FORMAT}")
        check_count("copy", self.copy)
        for each in self.part_digests or ():
            _check_digest("part_digests", each)
        named = self.parts > 1 and not is_unnamed(self.format, self.copy)
        if (self.part_digests is not None and len(self.part_digests) == self.parts) is not named:
            raise InvalidInput.of("part_digests", self.part_digests, "one for each of several parts, or None")

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.artifact.key


def _check_digest(field: str, digest: object) -> None:
    if not isinstance(digest, str) or _SHA256.fullmatch(digest) is None:
        raise InvalidInput.of(field, digest, "a sha256 in lower-case hex")


def is_unnamed(artifact_format: int, copy: int) -> bool:
    """Say whether the names of an artifact's files carry no digest, as those of the first format did not."""
    return artifact_format == FIRST_FORMAT and copy == 0


@dataclass(frozen=True, slots=True)
class SwapResult:
    """What a swap did with each partition of its batch, in the order given.

    Not published are `moved` (the authority is another by now, or none), `miscounted` (the artifact has
    another number of records than was accepted), `removed` (clean-up condemned this copy since the plan),
    `elsewhere` (another load recorded other files for it since) and `lost` (the claim under which it was
    worked on holds no more).
    """

    version: int
    loaded: tuple[PartitionKey, ...] = ()
    replaced: tuple[PartitionKey, ...] = ()
    unchanged: tuple[PartitionKey, ...] = ()
    moved: tuple[PartitionKey, ...] = ()
    miscounted: tuple[PartitionKey, ...] = ()
    removed: tuple[PartitionKey, ...] = ()
    elsewhere: tuple[PartitionKey, ...] = ()
    lost: tuple[PartitionKey, ...] = ()

    @property
    def skipped(self) -> tuple[PartitionKey, ...]:
        """Every partition that was left alone though it was staged."""
        return self.moved + self.miscounted + self.removed + self.elsewhere + self.lost


class LoadRecord(NamedTuple):
    """When a run of a partition was first loaded, and into what, for ever: nothing changes it (R-WH-2).

    `files_run_id` is the run whose files it shares, as its payload is the same; None if they are its own.
    """

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    run_id: RunId
    schema_version: str
    loaded_at: datetime
    record_count: int
    bytes: int
    digest: str
    location: str
    parts: int
    files_run_id: RunId | None = None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return PartitionKey(*self[:4])

    @property
    def artifact(self) -> Artifact:
        """The identity of what was loaded."""
        return Artifact(self.key, self.run_id, self.schema_version)


class StoredArtifact(NamedTuple):
    """What was loaded, and which files hold it; they are there unless a clean-up took them (`kept`).

    A run is always written in the `format` of its first load, so that its bytes are the same. `copy` counts
    how often its files had to be written anew.
    """

    record: LoadRecord
    format: int
    copy: int
    part_digests: tuple[str, ...] | None
    kept: bool = True

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.record.key

    @property
    def artifact(self) -> Artifact:
        """The identity of what was loaded."""
        return self.record.artifact

    @property
    def location(self) -> str:
        """The directory of its files."""
        return self.record.location

    @property
    def digest(self) -> str:
        """The digest of all its parts."""
        return self.record.digest

    @property
    def parts(self) -> int:
        """How many files it has."""
        return self.record.parts

    @property
    def files_run_id(self) -> RunId:
        """The run whose files they are: its own, or one with the same payload."""
        return self.record.files_run_id or self.record.run_id

    @property
    def published(self) -> Published:
        """What a reader would see of it, were it published."""
        record = self.record
        return Published(
            *record[:6],
            record_count=record.record_count,
            bytes=record.bytes,
            digest=record.digest,
            location=record.location,
            parts=record.parts,
            format=self.format,
            copy=self.copy,
            part_digests=self.part_digests,
            files_run_id=record.files_run_id,
            loaded_at=record.loaded_at,
            behind=False,
        )


class Replacement(NamedTuple):
    """A run that is to replace a published one, and may have its payload, by all that the ledger knows."""

    run_id: RunId
    maybe_same: bool
    published: StoredArtifact

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.published.key

    def shared(self, age: timedelta) -> Staged:
        """Return the run as it is published if its payload is the same: in the files of the published one."""
        record = self.published.record
        return Staged(
            Artifact(self.key, self.run_id, record.schema_version),
            record.record_count,
            record.bytes,
            record.digest,
            record.location,
            record.parts,
            self.published.format,
            self.published.copy,
            self.published.part_digests,
            self.published.files_run_id,
            Drift(record.run_id, age, record.record_count),
        )


@dataclass(frozen=True, slots=True)
class Condemned:
    """An artifact that a clean-up removes: the files of this copy, and of any before it."""

    artifact: Artifact
    copy: int
