"""`sealbook project`: take the log into the snapshots that `sealbook runs` shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json

if TYPE_CHECKING:
    from sealbook.ledger.events import Lag

app = typer.Typer(
    cls=DefaultGroup,
    help="Take the log into the snapshots that `sealbook runs` shows."
    "\n\n`sealbook project` is short for `run`, which has --follow and --rebuild.",
)

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook project
  sealbook project --follow
  sealbook project --rebuild
"""

_LAG_EXAMPLES = """
[bold]Examples[/bold]
  sealbook project lag --format json
"""


@app.command("run", epilog=_EXAMPLES)
def project(
    ctx: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C.")] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Project everything anew, then swap.")] = False,
) -> None:
    """Catch up with the log. Commands that append do so themselves; this is for where several machines do."""
    with open_book(ctx) as book:
        projector = book.ledger.projector()
        if rebuild:
            projector.rebuild()
            message("Projected everything anew.")
        if follow:
            message("Following the log; Ctrl-C ends it.")
            projector.follow()
        else:
            message(_said(projector.catch_up()))


@app.command("lag", epilog=_LAG_EXAMPLES)
def lag(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """Show how far the snapshots are behind the log; over 5 seconds, the alert PROJECTOR_LAG_HIGH."""
    with open_book(ctx) as book:
        measured = book.ledger.projector().lag()
    if form is Format.JSON:
        show_json([{**asdict(measured), "alert": measured.alert}])
    else:
        typer.echo(_said(measured))


def _said(measured: Lag) -> str:
    if measured.events == 0:
        return "Up to date with the log."
    alert = f" {measured.alert}" if measured.alert else ""
    return f"{measured.events:,} behind the log, the oldest event by {measured.seconds:.1f} s{alert}"
