"""How two runs of a partition differ: counts of rows, figures of columns, and a sample with both values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from enum import StrEnum

from sealbook.model.keys import PartitionKey, RunId

Number = int | float | Decimal


class RowChangeKind(StrEnum):
    """What became of a row from one run to the other."""

    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that differs: which one, and what it was and is.

    Of a changed row `before` and `after` have the columns that changed; of others the one side has them all.
    """

    kind: RowChangeKind
    primary_key: Mapping[str, object]
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class ColumnDiff:
    """The figures of a column on both sides; totals are of numbers that are no key, None where there is none.

    `changed` counts the rows of both sides in which it has another value.
    """

    name: str
    changed: int
    nulls_before: int
    nulls_after: int
    total_before: Number | None = None
    total_after: Number | None = None

    @property
    def difference(self) -> Number | None:
        """By how much the total grew, where both sides have one of the same kind."""
        match self.total_before, self.total_after:
            case (int() as before, int() as after):
                return after - before
            case (float() as before, float() as after):
                return after - before
            case (Decimal() as before, Decimal() as after):
                return after - before
        return None

    @property
    def differs(self) -> bool:
        """Whether any figure is another."""
        return (
            self.changed > 0 or self.nulls_before != self.nulls_after or self.total_before != self.total_after
        )


@dataclass(frozen=True, slots=True)
class RowsDiff:
    """How the rows of two tables of the same columns differ.

    Rows are matched by `primary_key`; without one whole rows are, and then none is `changed`. The n-th row of
    a key is matched with the n-th of the same key. The `sample` has so many rows of each kind as were asked
    for, in the order of their tables.
    """

    primary_key: tuple[str, ...]
    added: int
    removed: int
    changed: int
    unchanged: int
    columns: tuple[ColumnDiff, ...]
    sample: tuple[RowChange, ...] = ()


class RowsFrom(StrEnum):
    """Where the rows of a run were read."""

    ARTIFACT = "artifact"
    PAYLOAD = "payload"


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One side of a comparison.

    `unreadable_lines` are lines of the payload that are no rows by the contract; they are not compared.
    """

    run_id: RunId
    schema_version: str
    rows: int
    rows_from: RowsFrom
    unreadable_lines: int = 0


@dataclass(frozen=True, slots=True)
class RunDiff:
    """How a run of a partition differs from another.

    Compared are the columns that both have; those that one alone has, and those whose types have no common
    one, are named instead.
    """

    key: PartitionKey
    before: ComparedRun
    after: ComparedRun
    rows: RowsDiff
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    incomparable: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        counts = (self.rows.added, self.rows.removed, self.rows.changed)
        unread = self.before.unreadable_lines + self.after.unreadable_lines
        return not (any(counts) or unread or self.only_before or self.only_after or self.incomparable)

    def to_dict(self) -> dict[str, object]:
        """Return it as one object: the fields of the key first, and those of the rows beside the runs."""
        said = asdict(self)
        return {
            **said.pop("key"),
            **{name: said.pop(name) for name in ("before", "after")},
            **said.pop("rows"),
            **said,
        }


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A partition of which no two runs were compared, and why: there are none, or they cannot be read."""

    key: PartitionKey
    why: str
    failed: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return it as one object, the fields of the key first."""
        said = asdict(self)
        return {**said.pop("key"), **said}


@dataclass(frozen=True, slots=True)
class RunChoice:
    """The runs of a partition: those that are sealed and those that were published, each oldest first."""

    sealed: tuple[RunId, ...]
    published: tuple[RunId, ...]
    """Every run that a pointer ever named, in the order of pointers; the last may be published still."""

    def pair(self, before: RunId | None = None, after: RunId | None = None) -> tuple[RunId, RunId] | None:
        """Choose what is not given; None if there are no two runs.

        After is the newest run; before is the run that was published last, or if that is the same, the one
        that was published before it, or else the sealed run before it.
        """
        if after is None:
            after = max((each for each in (*self.sealed, *self.published) if each != before), default=None)
        if before is None and after is not None:
            others = [each for each in self.published if each != after]
            older = [each for each in self.sealed if each < after]
            before = next(iter([*reversed(others), *reversed(older)]), None)
        return None if before is None or after is None else (before, after)
