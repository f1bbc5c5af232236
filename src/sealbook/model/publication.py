"""What of a partition is published: pointers, what readers see, and why not; cuts.

What comes by the hundred thousand (a read, a coverage) is a tuple, which is several times quicker to
make than a dataclass; its first four fields are those of the key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.failures import LastFailure
from sealbook.model.keys import PartitionKey, RunId

_CUT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_CUT_TOKEN = re.compile(r"v[0-9]+")


class PointerStatus(StrEnum):
    """Whether a pointer is there to be followed."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"


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
