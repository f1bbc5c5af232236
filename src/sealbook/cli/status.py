"""`sealbook status`: how every partition stands, worst first, and what somebody should look at."""

from __future__ import annotations

from datetime import UTC, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.groups import DefaultGroup
from sealbook.cli.options import KEY_FORM, FormatOption, parsed_by
from sealbook.cli.output import Format, message, show_json, show_object
from sealbook.cli.selecting import selects
from sealbook.cli.status_grid import GRID_EXAMPLES, grid
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey
from sealbook.model.words import counted
from sealbook.views.choosing import day_of, parse_key

if TYPE_CHECKING:
    from sealbook.book import Book, BookReader
    from sealbook.model.alerts import Alert
    from sealbook.model.publication import Cut
    from sealbook.model.selection import Selection

app = typer.Typer(
    cls=DefaultGroup,
    help="How every partition stands, worst first."
    "\n\n`sealbook status` is short for `show`, which has the options that choose and list partitions.",
)

_SHOW_EXAMPLES = """
[bold]Examples[/bold]
  sealbook status
  sealbook status --query campaign_daily --since 2026-01-01
  sealbook status --attention --limit 20
  sealbook status --changed-since month_end --format json
"""
_SWEEP_EXAMPLES = """
[bold]Examples[/bold]
  sealbook status sweep
"""
_EXPORT_EXAMPLES = """
[bold]Examples[/bold]
  sealbook status export
  sealbook status export exports/ --query campaign_daily
"""
_ALERTS_EXAMPLES = """
[bold]Examples[/bold]
  sealbook status alerts
  sealbook status alerts --send
"""


@app.command("show", epilog=_SHOW_EXAMPLES)
@selects(keys=True, catches_up=True)
def show_(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    stale: Annotated[bool, typer.Option("--stale", help="List what is stale.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="List what the last attempt failed at.")] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="List what is due and nobody has attempted.")
    ] = False,
    attention: Annotated[
        bool, typer.Option("--attention", help="List all of it, and what was withdrawn or waits.")
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="List at most so many.")] = 100,
    after: Annotated[
        PartitionKey | None,
        typer.Option(
            metavar="KEY",
            help=f"Go on behind this partition, the last of the page before, as {KEY_FORM}.",
            parser=parsed_by(parse_key),
        ),
    ] = None,
    changed_since: Annotated[
        str,
        typer.Option(
            metavar="WHEN", help="Count what changed since then: yesterday, a day, a time (UTC) or a cut."
        ),
    ] = "yesterday",
    form: FormatOption = Format.TABLE,
) -> None:
    """Show how every query stands, what runs and what changed, and a grid of all partitions.

    Partitions that are named are listed, and so are those that --stale, --failed, --missing and
    --attention ask for, the worst first.
    """
    from sealbook.cli.status_list import show_lines
    from sealbook.model.status_line import StatusFilter

    del ctx
    where = StatusFilter(stale=stale, failed=failed, missing=missing, attention=attention)
    if selection.keys or not where.is_all:
        show_lines(book, selection, where, limit, after, form)
    else:
        _show_board(book, selection, changed_since, form)


app.command(epilog=GRID_EXAMPLES)(selects(catches_up=True)(grid))


@app.command(epilog=_SWEEP_EXAMPLES)
@selects(writes=True)
def sweep(ctx: typer.Context, book: Book, selection: Selection, form: FormatOption = Format.TABLE) -> None:
    """Write down what is stale now, since when and why, for who reads the table itself.

    `sealbook status` gives the same answer with and without it.
    """
    del ctx
    changed = book.sweep(selection)
    if form is Format.JSON:
        show_object({"changed": changed})
    message(f"What is written down changed for {counted(changed, 'partition')}.")


@app.command(epilog=_EXPORT_EXAMPLES)
@selects(catches_up=True)
def export(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    path: Annotated[
        Path, typer.Argument(metavar="[PATH]", help="A file, or a folder. Default: here.")
    ] = Path(),
    form: FormatOption = Format.TABLE,
) -> None:
    """Write the status of every partition as partition_status.parquet."""
    del ctx
    file, count = book.export_status(path, selection)
    if form is Format.JSON:
        show_object({"path": str(file), "partitions": count})
    message(f"Wrote {counted(count, 'partition')} to {file}")


@app.command(epilog=_ALERTS_EXAMPLES)
@selects(writes=True)
def alerts(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    send: Annotated[
        bool, typer.Option("--send", help="Tell who is configured of what is new, and of what is over.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """List what somebody should look at: withdrawn, late, given up or parked, a projection that lags.

    The exit code is 3 if there is any.
    Looking sends nothing. --send is for a cron job: each alert is sent once.
    """
    from sealbook.cli.failure import ExitCode

    ctx.obj.has_begun = False  # the same command again is all there is to go on with
    if send:
        if not selection.is_everything:
            raise InvalidInput(
                "all alerts are sent, or none", field="send", remedy="Leave out the options that choose."
            )
        found, sent = book.send_alerts()
        said = f"{counted(sent, 'notice')} sent."
    else:
        found = book.alerts(selection)
        said = "" if not found else "Nothing was sent: --send does."
    if form is Format.JSON:
        show_json(found)
    else:
        _print_alerts(found)
    message(f"{counted(len(found), 'alert')}. {said}".rstrip())
    if found:
        raise typer.Exit(ExitCode.DONE_IN_PART)


def _show_board(book: BookReader, selection: Selection, changed_since: str, form: Format) -> None:
    from sealbook.views.status_board import board_of

    since = _moment_or_cut(book, changed_since)
    if form is Format.JSON:
        show_object(board_of(book, selection, since).to_dict())
        return
    from rich.console import Console

    from sealbook.cli.board_text import print_board

    console = Console(highlight=False, markup=False)  # 80 characters wide where there is no terminal
    print_board(console, board_of(book, selection, since, width=console.width))


def _moment_or_cut(book: BookReader, text: str) -> datetime | Cut:
    """Read a day, a time or the token of a cut."""
    day = day_of(text)
    if day is not None:
        return datetime.combine(day, time(), UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return book.ledger.pointers.cut(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _print_alerts(found: list[Alert]) -> None:
    from rich.text import Text

    from sealbook.cli.table import stdout_console

    console = stdout_console()
    for each in found:
        console.print(Text.assemble((each.kind, "bold red"), f"  {each.message}"), soft_wrap=True)
        console.print(Text(f"  {each.command}", "cyan"), soft_wrap=True)
