"""`sealbook lineage`: tell a collector of OpenLineage events what the log has of runs and their steps."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json
from sealbook.model.words import counted

app = typer.Typer(
    cls=DefaultGroup,
    help="Tell a collector of OpenLineage events what the log has of runs and their steps."
    "\n\n`sealbook lineage` is short for `send`.",
)

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook lineage send
  sealbook lineage send --anew
"""

_LAG_EXAMPLES = """
[bold]Examples[/bold]
  sealbook lineage lag --format json
"""


@app.command(epilog=_EXAMPLES)
def send(
    ctx: typer.Context,
    anew: Annotated[
        bool, typer.Option("--anew", help="Send all that the log has, to a collector that knows nothing yet.")
    ] = False,
) -> None:
    """Send what is outstanding to where `lineage` says; commands and loops do so by themselves.

    An event that could not be sent is kept, and those after it. One that was sent before a crash may be sent
    again, under the same id.
    """
    with open_book(ctx) as book:
        sent = book.send_lineage(anew=anew)
    message(f"{counted(sent, 'event', 'was', 'were')} sent." if sent else "Nothing was outstanding.")


@app.command(epilog=_LAG_EXAMPLES)
def lag(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """Show how many events of the log the collector was not told yet, and for how long."""
    with open_book(ctx) as book:
        measured = book.ledger.reader.lineage.lag()
    if form is Format.JSON:
        show_json([asdict(measured)])
    elif measured.events:
        typer.echo(
            f"{counted(measured.events, 'event')} of the log, the oldest for {measured.seconds:,.0f} s"
        )
    else:
        typer.echo("All that the log has was told.")
