"""Partitions as `sealbook status` lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealbook.cli.output import Format, message, show_json

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.cli.table import Column
    from sealbook.model import PartitionKey
    from sealbook.model.selection import Selection
    from sealbook.model.status_line import StatusFilter, StatusLine
    from sealbook.views.status_lines import Shown

_STYLES = {
    "withdrawn": "bold red",
    "failed": "red",
    "last_attempt_failed": "yellow",
    "stale": "yellow",
    "missing": "magenta",
    "pending": "cyan",
}


def show_lines(
    book: BookReader,
    selection: Selection,
    where: StatusFilter,
    limit: int,
    after: PartitionKey | None,
    form: Format,
) -> None:
    """Show a page of partitions: how they stand, and what is done next about them."""
    from sealbook.views.status_lines import listed_lines, page_of

    shown, more = page_of(book, listed_lines(book, selection, where, after=after), limit)
    if form is Format.JSON:
        show_json(each.to_dict() for each in shown)
    else:
        from sealbook.cli.table import print_table

        print_table(shown, _line_columns())
    if more:
        message(f"There are more: --after {shown[-1].line.key}")
    if shown and form is Format.TABLE:
        message(f"Why, and what to do: sealbook explain {shown[0].line.key}")
    elif not shown:
        message("There is none.")


def _line_columns() -> list[Column[Shown]]:
    from sealbook.cli.table import Column
    from sealbook.views.status_lines import cell_of_line, why_of_line

    return [
        Column("partition", lambda each: each.line.key),
        Column(
            "status",
            lambda each: cell_of_line(each.line).value.replace("_", " "),
            style=lambda each: _STYLES.get(cell_of_line(each.line).value, ""),
        ),
        Column("why", lambda each: why_of_line(each.line), wraps=True),
        Column("next (UTC)", lambda each: each.outlook and each.outlook.in_short, spare=1),
        Column("last attempt (UTC)", lambda each: each.line.last_attempt_at, spare=1),
        Column("readable run", lambda each: _readable_run(each.line), spare=2),
        Column("published (UTC)", lambda each: each.line.last_materialization_at, spare=3),
    ]


def _readable_run(line: StatusLine) -> str | None:
    return line.last_materialization_run_id if line.availability.readable else None
