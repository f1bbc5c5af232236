"""The grid for a terminal of any width, in colour or without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from sealbook.model.display import Cell
from sealbook.model.words import counted
from sealbook.views.grid import CELLS, GAP, Grid, Step, label_of, label_width

if TYPE_CHECKING:
    from rich.console import Console

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
_MEANINGS = {
    Cell.WITHDRAWN: "withdrawn",
    Cell.FAILED: "failed",
    Cell.LAST_ATTEMPT_FAILED: "last attempt failed, earlier run readable",
    Cell.STALE: "stale",
    Cell.MISSING: "missing",
    Cell.PENDING: "pending",
    Cell.RUNNING: "running",
    Cell.PROVISIONAL: "provisional",
    Cell.MATERIALIZED: "readable",
}
_DATES = {Step.DAY: "%m-%d", Step.WEEK: "%m-%d", Step.MONTH: "%Y-%m", Step.YEAR: "%Y"}
_PLURALS = {Step.WEEK: "weeks", Step.MONTH: "months", Step.YEAR: "years"}


def print_grid(console: Console, grid: Grid) -> None:
    """Print a block for each query, of its customers; one customer alone is a block of its queries."""
    one = grid.one_customer
    width = label_width(grid.rows, one)
    wide = width + GAP + 2 * len(grid.columns) <= console.width
    for title, rows in grid.blocks.items():
        console.print()
        heading = Text(f"{title:<{width}}{' ' * GAP}", "bold").append(_ticks(grid, wide), "not bold dim")
        console.print(heading, soft_wrap=True)
        for row in rows:
            line = Text(f"{label_of(row, one):<{width}}{' ' * GAP}")
            for letter in row.letters:
                line.append(letter, _STYLES[CELLS[letter]] if letter in CELLS else "")
                line.append(" " if wide else "")
            line.rstrip()
            console.print(line, soft_wrap=True)
    _print_legend(console, grid)


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
    legend = Text()
    for cell in grid.cells:
        legend.append(cell.letter, _STYLES[cell])
        # Its words stay together where the line breaks.
        legend.append(f"\N{NO-BREAK SPACE}{_MEANINGS[cell].replace(' ', chr(0xA0))}  ", "dim")
    legend.rstrip()
    console.print()
    console.print(legend)
    if grid.step is not Step.DAY:
        console.print(
            Text(
                f"Columns are {_PLURALS[grid.step]}, and show the worst of their days; --since narrows.",
                "dim",
            )
        )
    if grid.left_out:
        console.print(
            Text(f"{counted(grid.left_out, 'row')} more, none of them worse; --customer shows one.", "dim")
        )
