"""What of a partition is published: the plan of a load, what was staged, what readers see, and why not.

What comes by the hundred thousand (a plan, a read, a coverage) is a tuple, which is several times quicker to
make than a dataclass; its first four fields are those of the key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.drift import Drift
from sealbook.model.failures import LastFailure
from sealbook.model.keys import PartitionKey, RunId, check_key
from sealbook.model.verdict import check_count, check_text

_SHA256 = re.compile(r"[0-9a-f]{64}")
_CUT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_CUT_TOKEN = re.compile(r"v[0-9]+")


class Action(StrEnum):
    """What a load must do about a partition (R-WH-1)."""

    LOAD = "load"
    REPLACE = "replace"
    HIDE = "hide"


class PointerStatus(StrEnum):
    """Whether a pointer is there to be followed."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"


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


class Pointer(NamedTuple):
    """A pointer of a partition, as it was from version `valid_from` of the warehouse until before `valid_to`.

    One without `valid_to` is the pointer that holds now; the others are its history.
    """

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    run_id: RunId
    schema_version: str
    valid_from: int
    valid_to: int | None
    published_at: datetime
    closed_at: datetime | None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return PartitionKey(*self[:4])

    @property
    def status(self) -> PointerStatus:
        """Whether there is something to follow."""
        return PointerStatus.AVAILABLE if self.valid_to is None else PointerStatus.UNAVAILABLE


class Withdrawal(StrEnum):
    """What became of a run that was readable once."""

    REJECTED = "rejected"
    ROLLED_BACK = "rolled back"


class Published(NamedTuple):
    """A partition as a reader sees it: the one run whose rows it gets, and where they lie (R-CON-1)."""

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    run_id: RunId
    schema_version: str
    record_count: int
    bytes: int
    digest: str
    location: str
    parts: int
    format: int
    copy: int
    part_digests: tuple[str, ...] | None
    files_run_id: RunId | None
    loaded_at: datetime
    behind: bool
    withdrawn: Withdrawal | None = None
    """Why the present does not read it any more; only a cut still does (R-WH-7)."""

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return PartitionKey(*self[:4])


class Freshest(NamedTuple):
    """How much of a query can be read, up to which day, and when the last of it was published."""

    source: str
    query_name: str
    partitions: int
    newest_day: date
    published_at: datetime


class CoverageKind(StrEnum):
    """What a read gets of a partition: rows of the first three kinds, and nothing of the others (R-CON-3)."""

    PUBLISHED = "published"
    BEHIND = "behind"
    WITHDRAWN = "withdrawn"
    PENDING = "pending"
    HIDDEN = "hidden"
    FAILED = "failed"
    MISSING = "missing"
    NOT_DUE = "not_due"


class Coverage(NamedTuple):
    """What a read gets of one partition, of which run, and why not its newest or nothing at all."""

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    kind: CoverageKind
    run_id: RunId | None = None
    why: str | None = None
    last_failure: LastFailure | None = None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return PartitionKey(*self[:4])

    def after(self, failure: LastFailure) -> Coverage:
        """Return what is true besides where the last attempt failed: then somebody has attempted it."""
        if self.kind is CoverageKind.MISSING:
            return self._replace(kind=CoverageKind.FAILED, why=str(failure), last_failure=failure)
        why = str(failure) if self.why is None else f"{self.why}; {failure}"
        return self._replace(why=why, last_failure=failure)


class Change(StrEnum):
    """How what is published of a partition differs from what was."""

    WITHDRAWN = "withdrawn"
    """It cannot be read any more."""
    REPLACED = "replaced"
    RESTORED = "restored"
    """It can be read again, after it could not."""
    PUBLISHED = "published"
    """It can be read for the first time."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which a pointer does not mirror the state of its partition.

    Where no change is `noted`, only a full load comes by.
    """

    key: PartitionKey
    field: str
    pointer: str
    state: str
    noted: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """A version of the warehouse that stays readable, by its token, until the cut is dropped (R-WH-7)."""

    token: str
    version: int
    created_at: datetime
    note: str | None = None


def check_cut_name(name: object) -> None:
    """Refuse a name that is not one, or that looks like the token of a cut without a name."""
    if not isinstance(name, str) or _CUT_NAME.fullmatch(name) is None or _CUT_TOKEN.fullmatch(name):
        raise InvalidInput.of(
            "cut name",
            name,
            "a lower-case letter, then at most 62 of a-z, 0-9, _ and -, and not v and a number",
        )
