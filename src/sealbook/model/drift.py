"""How much a day changed when a run replaced another, and how old the day was then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from math import isfinite
from types import MappingProxyType

from sealbook.model.keys import RunId, run_time
from sealbook.model.run_diff import ColumnDiff, Number, RowsDiff

AGES = tuple(
    timedelta(hours=hours) for hours in (0, 6, *(24 * days for days in (1, 2, 3, 7, 14, 30, 60, 90)))
)
"""The ages by which drift is summed up: each stands for what is so old, and younger than the next."""

BEFORE_END = timedelta(hours=-1)
"""Stands for days that were not over."""

Totals = Mapping[str, tuple[Number | None, Number | None]]
"""The totals of columns that differ, before and after."""

_NONE: Totals = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Drift:
    """What a replacement changed: rows of the run that was replaced, and how many are other ones since.

    `change` is the largest of its relative differences, from 0 to 1: of the totals of numeric columns, and of
    the number of rows that were added or removed. A `problem` says why the runs were not compared.
    """

    from_run_id: RunId
    age: timedelta
    rows: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    totals: Totals = field(default_factory=lambda: _NONE)
    change: float = 0.0
    problem: str | None = None

    @classmethod
    def of(cls, from_run_id: RunId, age: timedelta, diff: RowsDiff) -> Drift:
        """Return what a comparison of the two runs found."""
        rows = diff.removed + diff.changed + diff.unchanged
        totals = {
            each.name: (each.total_before, each.total_after) for each in diff.columns if _has_moved(each)
        }
        change = max(
            relative(rows, rows + diff.added + diff.removed),
            *(relative(before, after) for before, after in totals.values()),
            0.0,
        )
        return cls(from_run_id, age, rows, diff.added, diff.removed, diff.changed, totals, change)


def relative(before: Number | None, after: Number | None) -> float:
    """Return by which part of what it was a number changed: at most by all of it; no number counts as 0."""
    was, now = float(before or 0), float(after or 0)
    if was == now:
        return 0.0
    return min(abs(now - was) / abs(was), 1.0) if was else 1.0


def _has_moved(column: ColumnDiff) -> bool:
    """Say whether the total of a column is another one; one that is no number tells nothing."""
    totals = [each for each in (column.total_before, column.total_after) if each is not None]
    return column.total_before != column.total_after and all(isfinite(each) for each in totals)


def age_of(run_id: RunId, day_end: datetime) -> timedelta:
    """Return how old a day was when a run was opened, in whole hours: negative if it was not over."""
    return timedelta(hours=(run_time(run_id) - day_end) // timedelta(hours=1))


@dataclass(frozen=True, slots=True)
class DriftSum:
    """The replacements of days of about one age, of a query or of one customer of it.

    Rows, changes and `unchanged` are of those that were `compared`; `change` is their mean, and `columns` has
    the mean relative difference of the total of each numeric column that differs in any.
    """

    source: str
    query_name: str
    customer_id: str | None
    age: timedelta
    replacements: int
    compared: int
    unchanged: int
    rows: int
    added: int
    removed: int
    changed: int
    change: float
    columns: Mapping[str, float] = field(default_factory=dict)

    @property
    def share_unchanged(self) -> float | None:
        """Which part of what was compared is as it was."""
        return self.unchanged / self.compared if self.compared else None

    def to_dict(self) -> dict[str, object]:
        """Return it as one object, its age in hours."""
        said = asdict(self)
        hours = said.pop("age") // timedelta(hours=1)
        return {
            **{name: said.pop(name) for name in ("source", "query_name", "customer_id")},
            "age_hours": hours,
            **said,
            "share_unchanged": self.share_unchanged,
        }


def age_text(age: timedelta) -> str:
    """Return an age as people say it: `6h`, `3d`."""
    if age < timedelta():
        return "not over"
    hours = age // timedelta(hours=1)
    return f"{hours // 24}d" if hours and hours % 24 == 0 else f"{hours}h"
