"""The grid for a terminal of any width, in colour or without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from sealbook.model.display import Cell
from sealbook.model.words import counted
from sealbook.views.grid import CELLS, GAP, Grid, Step, worst
from sealbook.views.standings import MEANINGS

if TYPE_CHECKING:
    from rich.console import Console

FEW = 4
"""So many rows in which all is good are one line."""

_STYLES = {
    Cell.WITHDRAWN: "bold red",
    Cell.FAILED: "red",
    Cell.LAST_ATTEMPT_FAILED: "yellow",
    Cell.STALE: "yellow",
    Cell.MISSING: "magenta",
    Cell.PENDING: "cyan",
    Cell.RUNNING: "cyan",
    Cell.PROVISIONAL: "dim green",
    Cell.MATERIALIZED: "green",
}
_DATES = {Step.DAY: "%m-%d", Step.WEEK: "%m-%d", Step.MONTH: "%Y-%m", Step.YEAR: "%Y"}


def print_grid(console: Console, grid: Grid) -> None:
    """Print a block for each query, of its customers; one customer alone is a block of its queries."""
    labels = grid.labels
    width = labels.width(grid.rows)
    wide = width + GAP + 2 * len(grid.columns) <= console.width
    for title, rows in grid.blocks.items():
        console.print()
        heading = Text(f"{title:<{width}}{' ' * GAP}", "bold").append(_ticks(grid, wide), "not bold dim")
        console.print(heading, soft_wrap=True)
        alike = [row for row in rows if row.is_good]
        shown = rows if len(alike) < FEW else [row for row in rows if not row.is_good]
        for row in shown:
            console.print(_line(labels.before(row), row.letters, width, wide), soft_wrap=True)
        if shown is not rows:
            letters = "".join(map(worst, zip(*(row.letters for row in alike), strict=True)))
            console.print(_line(f"{len(alike)} good", letters, width, wide), soft_wrap=True)
    _print_legend(console, grid)


def _line(label: str, letters: str, width: int, wide: bool) -> Text:
    line = Text(f"{label:<{width}}{' ' * GAP}")
    for letter in letters:
        line.append(letter, _STYLES[CELLS[letter]] if letter in CELLS else "")
        line.append(" " if wide else "")
    line.rstrip()
    return line


def _ticks(grid: Grid, wide: bool) -> str:
    """Return the dates above the columns, as many as there is room for."""
    form = _DATES[grid.step]
    if grid.step in (Step.DAY, Step.WEEK) and grid.columns[0].first.year != grid.columns[-1].last.year:
        form = "%Y-%m-%d"
    line = ""
    for place, column in enumerate(grid.columns):
        start = place * 2 if wide else place
        if not line or start >= len(line) + 2:
            line = f"{line:<{start}}{column.first.strftime(form)}"
    return line


def _print_legend(console: Console, grid: Grid) -> None:
    """Say what the letters mean that are shown, each on one line with its words."""
    console.print()
    line = Text()
    for cell in grid.cells:
        entry = Text.assemble((cell.letter, _STYLES[cell]), (f" {MEANINGS[cell]}", "dim"))
        if line and len(line) + 2 + len(entry) > console.width:
            console.print(line, soft_wrap=True)
            line = Text()
        line.append("  " if line else "").append_text(entry)
    console.print(line, soft_wrap=True)
    notes = []
    if grid.step is not Step.DAY:
        notes.append(f"Each column is a {grid.step}, and shows the worst of its days; --since narrows.")
    if grid.left_out:
        notes.append(f"{counted(grid.left_out, 'row')} more, none of them worse; --customer-id shows one.")
    for note in notes:
        console.print(Text(note, "dim"))
