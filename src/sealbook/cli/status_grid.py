"""`sealbook status grid`: every row of the grid, by the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_object

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.model.selection import Selection
    from sealbook.views.grid import Step
    from sealbook.views.sheet import GridPage, Sheet

GRID_EXAMPLES = """
[bold]Examples[/bold]
  sealbook status grid --query campaign_daily --step week
  sealbook status grid --cell failed --cell withdrawn
  sealbook status grid --rows 1000 --format json
"""


def grid(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    step: Annotated[
        str | None,
        typer.Option(
            metavar="STEP",
            help="What a column stands for: day, week, month or year. Default: the finest that fits.",
        ),
    ] = None,
    match: Annotated[
        str, typer.Option(metavar="TEXT", help="Only rows whose customer or query has this in its name.")
    ] = "",
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar="CELL", help="Only rows that show this, such as failed; may be given again."),
    ] = None,
    page: Annotated[int, typer.Option(metavar="N", min=1, help="Which page of rows.")] = 1,
    rows: Annotated[int, typer.Option(metavar="N", min=1, max=1_000, help="Rows of a page.")] = 50,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show every row of the grid, the worst first, by the page; of the last year, unless days are chosen.

    As JSON a cell is one character that says both what consumers get and how the last attempt went.
    """
    from sealbook.model.display import Cell
    from sealbook.views.choosing import words_of
    from sealbook.views.grid import Step
    from sealbook.views.sheet import sheet_of

    del ctx
    steps = words_of("step", [] if step is None else [step], Step)
    cells = words_of("cell", cell or (), Cell)
    sheet = sheet_of(book.ledger, book.expectations(), selection).only(match, cells)
    if form is Format.JSON:
        show_object(sheet.page(steps[0] if steps else Step.DAY, page, rows).to_dict())
        return
    found = _print(sheet, steps[0] if steps else None, page, rows)
    if not found.rows:
        message("There is none.")
    elif page < found.page_count:
        message(f"There are more: --page {page + 1} of {found.page_count}.")


def _print(sheet: Sheet, step: Step | None, page: int, rows: int) -> GridPage:
    from rich.console import Console

    from sealbook.cli.grid_text import print_grid
    from sealbook.views.grid import GAP, Labels, Step, fitting

    console = Console(highlight=False, markup=False)
    if step is None and sheet.days is not None:
        step, _ = fitting(*sheet.days, console.width - Labels.of(sheet.rows).width(sheet.rows) - GAP)
    found = sheet.page(step or Step.DAY, page, rows)
    if found.rows:
        print_grid(console, found.as_grid())
    return found
