"""What a mirror asks of a table format: where it is, what it holds, and one commit for a batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple, Protocol

from sealbook.model.column_types import ColumnType
from sealbook.model.publication import Published
from sealbook.read.schema import Schema

TOKEN, SHAPE = "sealbook.token", "sealbook.shape"
"""What a commit says of itself: which instant it is equal to, and what columns and files follow from."""

Slot = tuple[str, date]
"""A partition of one query: its customer and its day."""


class DataFile(NamedTuple):
    """A file that holds rows of a partition: one of the warehouse, or a copy in the mirror's own folder."""

    published: Published
    path: str
    """Below the root of the warehouse, or if `copied`, of the table."""
    bytes: int
    rows: int
    copied: bool


class HeldFile(NamedTuple):
    """A file that a table has now. `known` is what its format needs to take it out."""

    slot: Slot
    run_id: str
    path: str
    known: Any


@dataclass(frozen=True, slots=True)
class Commit:
    """The latest commit of a table; without a token it is not the mirror's."""

    name: str
    """The version of a Delta table, the snapshot of an Iceberg table."""
    at: datetime | None
    """None if it does not say."""
    token: str | None = None
    shape: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one commit changes: files that come, and files that go."""

    token: str
    shape: str
    schema: Schema
    names: Mapping[str, Collection[str]]
    """What else columns are called in files that are referred to."""
    at: datetime
    added: tuple[DataFile, ...]
    removed: tuple[HeldFile, ...]
    whole: bool
    """Whether it says what the table is from now on, columns included, whatever it was before."""


class MirrorTable(Protocol):
    """A table of a mirror. Nothing is kept open, and nothing is written but by `commit`."""

    renames: bool
    """Whether a file that calls a column by another name can be referred to."""

    def reads_as(self, own: ColumnType, shown: ColumnType) -> bool:
        """Say whether readers of the format get a column of one type as another, if it is not the same."""
        ...

    def latest(self) -> Commit | None:
        """Look at the table anew, and return its latest commit; None if it is not there."""
        ...

    def files(self) -> list[HeldFile]:
        """Return what the table holds at its latest commit."""
        ...

    def path_of(self, file: DataFile) -> str:
        """Return the path of a file as the format spells it."""
        ...

    def commit(self, batch: Batch) -> str:
        """Commit on the commit that was looked at; Conflict if somebody else was quicker. Return its name."""
        ...
