"""The whole grid of what is chosen, day by day, and pages of it: rows worst first, totals both ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from sealbook.errors import InvalidInput
from sealbook.model.display import Cell
from sealbook.model.expectations import Expectations
from sealbook.model.selection import Selection
from sealbook.model.standing import BY_CODE, worst_code
from sealbook.model.status_line import DayCells
from sealbook.model.universe import AssetName, Days
from sealbook.views.grid import Bin, Grid, GridRow, Step, bins, by_badness, by_name
from sealbook.views.standings import told
from sealbook.views.status_board import runs_of

if TYPE_CHECKING:
    from sealbook.ledger.reader import LedgerReader

DAYS = 365
"""So many days are shown where no first day is asked for."""

MOST_DAYS = 3_660
MOST_ROWS = 1_000
"""More are not answered at once."""

_LETTERS = str.maketrans({code: standing.cell.letter for code, standing in BY_CODE.items()})
_CELLS = {code: standing.cell for code, standing in BY_CODE.items()}


@dataclass(frozen=True, slots=True)
class GridPage:
    """Some rows of the grid, the worst first, a code for each column; totals are those of all rows."""

    now: datetime
    step: Step
    columns: tuple[Bin, ...]
    rows: tuple[GridRow, ...]
    number: int
    """Which page it is; the first is 1."""
    size: int
    row_count: int
    """How many rows there are on all pages."""
    column_totals: tuple[Counter[Cell], ...]
    total: Counter[Cell]

    @property
    def page_count(self) -> int:
        """How many pages there are."""
        return max(-(-self.row_count // self.size), 1)

    def as_grid(self) -> Grid:
        """Return the rows by the letters of cells, as a terminal shows them."""
        rows = (replace(row, letters=row.letters.translate(_LETTERS)) for row in self.rows)
        return Grid(self.step, self.columns, tuple(rows))

    def to_dict(self) -> dict[str, object]:
        """Return one object: the cells of a row are codes, each of which is told with both its facts."""
        shown = sorted(set().union(*(row.letters for row in self.rows)) & BY_CODE.keys(), reverse=True)
        return {
            "now": self.now,
            "step": self.step,
            "columns": [each.to_dict() for each in self.columns],
            "rows": [row.to_dict() for row in self.rows],
            "page": self.number,
            "page_size": self.size,
            "row_count": self.row_count,
            "column_totals": [by_name(each) for each in self.column_totals],
            "total": by_name(self.total),
            "codes": {code: told(BY_CODE[code]) for code in shown},
        }


@dataclass(frozen=True, slots=True)
class Sheet:
    """Every row of what is chosen, the worst first, with a code for each day."""

    now: datetime
    days: Days | None
    """The first and the last day; None if nothing is expected."""
    rows: tuple[GridRow, ...]

    @classmethod
    def of(cls, now: datetime, days: Days, found: Iterable[DayCells]) -> Sheet:
        """Put rows in order."""
        rows = [GridRow(*each, _counts(each.letters)) for each in found]
        return cls(now, days, tuple(sorted(rows, key=by_badness)))

    def only(self, match: str = "", cells: Iterable[Cell] = ()) -> Sheet:
        """Return the rows whose customer or query has a text in its name, and that show any of some cells."""
        wanted = {*cells}
        rows = (
            row
            for row in self.rows
            if (match in row.customer_id or match in row.query_name)
            and (not wanted or not wanted.isdisjoint(row.counts))
        )
        return replace(self, rows=tuple(rows))

    def page(self, step: Step = Step.DAY, number: int = 1, size: int = MOST_ROWS) -> GridPage:
        """Cut out a page of rows; what is binned shows its worst."""
        columns = [] if self.days is None else bins(*self.days, step)
        chosen = self.rows[(number - 1) * size : number * size]
        totals = self._totals(columns)
        return GridPage(
            now=self.now,
            step=step,
            columns=tuple(columns),
            rows=tuple(replace(row, letters=self._binned(row.letters, columns)) for row in chosen),
            number=number,
            size=size,
            row_count=len(self.rows),
            column_totals=tuple(totals),
            total=sum(totals, Counter()),
        )

    def _binned(self, codes: str, columns: Sequence[Bin]) -> str:
        if len(codes) == len(columns):
            return codes
        return "".join(worst_code(codes[start:stop]) for start, stop in self._places(columns))

    def _totals(self, columns: Sequence[Bin]) -> list[Counter[Cell]]:
        """Count the partitions of each column, all rows together."""
        width = sum(stop - start for start, stop in self._places(columns))
        days = "".join(row.letters for row in self.rows)
        by_day = [_counts(days[place::width]) for place in range(width)]
        return [sum(by_day[start:stop], Counter()) for start, stop in self._places(columns)]

    def _places(self, columns: Sequence[Bin]) -> list[tuple[int, int]]:
        """Return where the days of each column lie in a row."""
        first = columns[0].first if columns else date.min
        return [((each.first - first).days, (each.last - first).days + 1) for each in columns]


def sheet_of(ledger: LedgerReader, expectations: Expectations, selection: Selection) -> Sheet:
    """Read the cells of all that is chosen, of the last year unless other days are asked for."""
    now, reader = expectations.now, ledger.statuses
    days = _days(expectations, selection, reader.last_known())
    if days is None:
        return Sheet(now, None, ())
    running = runs_of(ledger, now).partitions(ledger)
    assets, accounts = expectations.universe.assets, expectations.universe.accounts
    found = reader.cells(expectations, selection, *days, running=running, as_codes=True)
    expected = (
        each
        for each in found
        if AssetName(each.source, each.query_name) in assets and each.customer_id in accounts[each.source]
    )
    return Sheet.of(now, days, expected)


def _days(expectations: Expectations, selection: Selection, known: dict[AssetName, date]) -> Days | None:
    """Return the days to show: those asked for, as far as there are any."""
    now = expectations.now
    due = list(expectations.universe.due(replace(selection, since=None, until=None), now))
    if not due:
        return None
    # What is not due yet may be there; a day that lies far ahead is a mistake, not the end of the grid.
    ahead = [day for asset, day in known.items() if selection.has_query(*asset) and day <= now.date()]
    last = max([each.last for each in due] + ahead)
    last = min(last, selection.until or last)
    first = max(selection.since or last - timedelta(days=DAYS - 1), min(each.first for each in due))
    if (last - first).days >= MOST_DAYS:
        raise InvalidInput(
            f"{(last - first).days + 1:,} days are more than {MOST_DAYS:,}",
            field="since",
            value=first,
            remedy="Ask for fewer days: give a later since, or an earlier until.",
        )
    return None if first > last else (first, last)


def _counts(codes: str) -> Counter[Cell]:
    found: Counter[Cell] = Counter()
    for code, count in Counter(codes).items():
        if code in _CELLS:
            found[_CELLS[code]] += count
    return found
