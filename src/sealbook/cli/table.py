"""Tables for people: coloured and fitted to the terminal, plain and complete where there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Generic, TypeVar

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sealbook.cli.output import message

T = TypeVar("T")

_PAGE = 500  # rows that are laid out together, and held in memory at once
_UNBOUNDED = 100_000  # the width of what is no terminal: whoever reads it decides where lines end
_GAP = 2
_LEAST_TO_WRAP_IN = 20


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table. On a narrow terminal those with the highest `spare` give way first; 0 stays."""

    name: str
    value: Callable[[T], object]
    style: Callable[[T], str] = lambda _: ""
    spare: int = 0
    number: bool = False
    wraps: bool = False


def print_table(records: Iterable[T], columns: Sequence[Column[T]]) -> None:
    """Print a table to stdout, page by page, so that it may be of any length."""
    console = stdout_console()
    widths = {column.name: cell_len(column.name) for column in columns}
    hidden: set[str] = set()
    headed = True
    for page in _pages(records):
        rows = [{column.name: cell(column.value(record)) for column in columns} for record in page]
        for name in widths:
            widths[name] = max(widths[name], *(cell_len(row[name]) for row in rows))
        if console.is_terminal:
            shown = _fitting(columns, widths, console.width)
            hidden.update(column.name for column in columns if column not in shown)
            console.print(_laid_out(page, rows, shown, widths))
        else:
            _print_plain(rows, columns, widths, headed=headed)
            headed = False
    if hidden:
        names = ", ".join(column.name for column in columns if column.name in hidden)
        message(f"The terminal is too narrow for: {names}. --format json shows all.")


def stdout_console() -> Console:
    """Return the console for results: as wide as the terminal, or without end where there is none."""
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=_UNBOUNDED)


def cell(value: object) -> str:
    """Return a value as one line of text that cannot disturb a terminal."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = " ".join(str(value).split())
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _laid_out(
    page: Sequence[T], rows: Sequence[dict[str, str]], shown: Sequence[Column[T]], widths: dict[str, int]
) -> Table:
    # The box itself takes one blank of the gap between two columns.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for column in shown:
        table.add_column(
            column.name,
            justify="right" if column.number else "left",
            min_width=None if column.wraps else widths[column.name],
            no_wrap=not column.wraps,
            overflow="fold",
        )
    for record, row in zip(page, rows, strict=True):
        table.add_row(*(Text(row[column.name], column.style(record)) for column in shown))
    return table


def _print_plain(
    rows: Iterable[dict[str, str]], columns: Sequence[Column[T]], widths: dict[str, int], *, headed: bool
) -> None:
    heading = {column.name: column.name for column in columns}
    for row in [heading, *rows] if headed else rows:
        padded = (_padded(row[column.name], widths[column.name], column.number) for column in columns)
        sys.stdout.write((" " * _GAP).join(padded).rstrip() + "\n")
    sys.stdout.flush()


def _padded(text: str, width: int, number: bool) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if number else text + blanks


def _fitting(columns: Sequence[Column[T]], widths: dict[str, int], room: int) -> list[Column[T]]:
    """Leave out the columns that can be spared until the rest fits."""
    shown = list(columns)
    while sum(_least_width(column, widths) for column in shown) + _GAP * (len(shown) - 1) > room:
        most = max(shown, key=lambda column: column.spare)
        if not most.spare:
            break
        shown.remove(most)
    return shown


def _least_width(column: Column[T], widths: dict[str, int]) -> int:
    width = widths[column.name]
    return min(width, _LEAST_TO_WRAP_IN) if column.wraps else width


def _pages(records: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(records)
    while page := list(islice(remaining, _PAGE)):
        yield page
