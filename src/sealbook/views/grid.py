"""The grid: customers or queries down, days across, a letter for each partition or the worst of a bin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Protocol

from sealbook.model.display import GOOD, Cell
from sealbook.model.standing import BLANK
from sealbook.model.status_line import DayCells

GAP = 2
"""Characters between a label and its cells."""

_RANKS = {BLANK: len(Cell), **{cell.letter: rank for rank, cell in enumerate(Cell)}}
CELLS = {cell.letter: cell for cell in Cell}


class Named(Protocol):
    """What a row is of."""

    @property
    def source(self) -> str: ...
    @property
    def customer_id(self) -> str: ...
    @property
    def query_name(self) -> str: ...


class Step(StrEnum):
    """How many days a column stands for."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Bin:
    """The days of one column, both ends included."""

    first: date
    last: date

    def to_dict(self) -> dict[str, object]:
        """Return one object."""
        return {"first": self.first, "last": self.last}


def bins(first: date, last: date, step: Step) -> list[Bin]:
    """Cut a span of days into bins; weeks begin on Mondays, and those at the ends may be cut short."""
    found = []
    day = first
    while day <= last:
        end = min(_end_of(day, step), last)
        found.append(Bin(day, end))
        day = end + timedelta(days=1)
    return found


def fitting(first: date, last: date, room: int) -> tuple[Step, list[Bin]]:
    """Return the finest step whose bins fit into so many columns; the last columns, if none does."""
    for step in Step:
        found = bins(first, last, step)
        if len(found) <= room:
            break
    return step, found[-max(room, 1) :]


def worst(letters: Iterable[str]) -> str:
    """Return the letter of the worst of some cells."""
    return min(letters, key=_RANKS.__getitem__, default=BLANK)


@dataclass(frozen=True, slots=True)
class Labels:
    """What stands above and before rows, by what they have in common."""

    one_customer: bool
    """Whether queries go down, as there is but one customer."""
    several_sources: bool

    @classmethod
    def of(cls, rows: Sequence[Named]) -> Labels:
        """Look at the rows."""
        customers = {(row.source, row.customer_id) for row in rows}
        sources = {row.source for row in rows}
        return cls(len(rows) > 1 and len(customers) == 1, len(sources) > 1)

    def title(self, row: Named) -> str:
        """Return what a row stands below: its query, or its customer if that is the only one."""
        if self.one_customer:
            return row.customer_id
        return f"{row.source}/{row.query_name}" if self.several_sources else row.query_name

    def before(self, row: Named) -> str:
        """Return what stands before a row."""
        return row.query_name if self.one_customer else row.customer_id

    def width(self, rows: Iterable[Named]) -> int:
        """Return how wide the titles and labels of rows are."""
        texts = (text for row in rows for text in (self.title(row), self.before(row)))
        return max(map(len, texts), default=0)


@dataclass(frozen=True, slots=True)
class GridRow:
    """A customer of a query: a letter for each column, and how many partitions there are of each."""

    source: str
    customer_id: str
    query_name: str
    letters: str
    counts: Counter[Cell]

    @property
    def is_good(self) -> bool:
        """Whether every partition that is due is as it should be."""
        return GOOD.issuperset(self.counts)

    @property
    def badness(self) -> tuple[int, ...]:
        """By which rows are put in order: that with most of the worst first."""
        return tuple(-self.counts[cell] for cell in Cell if cell is not Cell.MATERIALIZED)

    def to_dict(self) -> dict[str, object]:
        """Return one object."""
        return {
            "source": self.source,
            "customer_id": self.customer_id,
            "query_name": self.query_name,
            "cells": self.letters,
            "counts": by_name(self.counts),
        }


def by_name(counts: Mapping[Cell, int]) -> dict[str, int]:
    """Return how many partitions there are of each cell, the worst first, by the cell's name."""
    return {cell.value: counts[cell] for cell in Cell if counts.get(cell)}


def grid_row(
    source: str, customer_id: str, query_name: str, letters: str, first: date, columns: Sequence[Bin]
) -> GridRow:
    """Return a row of bins, of one letter for each day from the first on."""
    shown = "".join(
        worst(letters[max((each.first - first).days, 0) : (each.last - first).days + 1]) for each in columns
    )
    counts = Counter({CELLS[letter]: count for letter, count in Counter(letters).items() if letter != BLANK})
    return GridRow(source, customer_id, query_name, shown, counts)


@dataclass(frozen=True, slots=True)
class Grid:
    """All rows that are in view, in the order of badness, and how many are not."""

    step: Step
    columns: tuple[Bin, ...]
    rows: tuple[GridRow, ...]
    left_out: int = 0

    @classmethod
    def of(
        cls,
        found: Sequence[DayCells],
        first: date,
        last: date,
        *,
        width: int | None = None,
        left_out: int = 0,
    ) -> Grid:
        """Lay out what was found of a span of days, in so many characters, or day by day in any number."""
        if width is None:
            step, columns = Step.DAY, bins(first, last, Step.DAY)
        else:
            step, columns = fitting(first, last, width - Labels.of(found).width(found) - GAP)
        rows = [grid_row(*each, first, columns) for each in found]
        return cls(step, tuple(columns), tuple(sorted(rows, key=by_badness)), left_out)

    @property
    def labels(self) -> Labels:
        """What stands above and before the rows."""
        return Labels.of(self.rows)

    @property
    def blocks(self) -> dict[str, list[GridRow]]:
        """The rows below their titles, the block with the worst row first."""
        labels = self.labels
        found: dict[str, list[GridRow]] = {}
        for row in self.rows:
            found.setdefault(labels.title(row), []).append(row)
        return found

    @property
    def cells(self) -> list[Cell]:
        """Which letters are shown, the worst first."""
        shown = set().union(*(row.letters for row in self.rows))
        return [cell for cell in Cell if cell.letter in shown]

    def to_dict(self) -> dict[str, object]:
        """Return one object: a letter for each column of each row, and what the letters mean."""
        return {
            "step": self.step,
            "columns": [each.to_dict() for each in self.columns],
            "rows": [row.to_dict() for row in self.rows],
            "left_out": self.left_out,
            "letters": {cell.letter: cell.value for cell in self.cells},
        }


def by_badness(row: GridRow) -> tuple[object, ...]:
    """Return what puts rows in order: the worst first, then by their names."""
    return row.badness, row.source, row.query_name, row.customer_id


def _end_of(day: date, step: Step) -> date:
    match step:
        case Step.WEEK:
            return day + timedelta(days=6 - day.weekday())
        case Step.MONTH:
            following = day.replace(day=28) + timedelta(days=4)
            return following - timedelta(days=following.day)
        case Step.YEAR:
            return day.replace(month=12, day=31)
    return day
