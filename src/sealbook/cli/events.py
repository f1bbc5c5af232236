"""`sealbook events`: what a run said, and the whole log as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message
from sealbook.errors import NotFound

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.model import RunEvent

app = typer.Typer(cls=DefaultGroup, help="What a run said, and the whole log as files.")

_SHOW_EXAMPLES = """
[bold]Examples[/bold]
  sealbook events 01J8ZQ6T5N8W3Y2V7R4K9M0XCE
  sealbook events 01J8ZQ6T5N8W3Y2V7R4K9M0XCE --type PartitionFailed --format json
  sealbook events 01J8ZQ6T5N8W3Y2V7R4K9M0XCE --follow
"""

_EXPORT_EXAMPLES = """
[bold]Examples[/bold]
  sealbook events export --to log
"""


@app.command(epilog=_SHOW_EXAMPLES)
def show(
    ctx: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", help="The run.")],
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, until Ctrl-C.")] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="NAME", help="Only this type; may be given again.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the events of a run, in the order of their numbers.

    With --follow and --format json, each line is one event.
    """
    with open_book(ctx) as book:
        if not follow and not book.ledger.run_store.fetch_events(run_id, limit=1):
            raise NotFound(f"run {run_id} has said nothing", remedy="`sealbook runs` lists the runs.")
        events = book.ledger.run_store.follow_run(run_id) if follow else _all(book, run_id)
        wanted = (event for event in events if not types or event.event_type in types)
        if form is Format.TABLE:
            for event in wanted:
                typer.echo(_line(event))
        elif follow:
            for event in wanted:
                typer.echo(event.to_json())
        else:
            from sealbook.cli.output import show_json

            show_json(event.to_dict() for event in wanted)


@app.command(epilog=_EXPORT_EXAMPLES)
def export(
    ctx: typer.Context,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder.")],
) -> None:
    """Write the whole log as Parquet files, all events of a run in one bucket, for Spark to fold."""
    from rich.progress import Progress

    from sealbook.spark.event_log import export_log

    written = 0
    with open_book(ctx) as book, Progress(transient=True) as progress:
        task = progress.add_task("Exporting", total=book.ledger.run_store.backlog().events)
        for written in export_log(book.ledger.run_store, to):
            progress.update(task, completed=written)
    message(f"Wrote {written:,} events to {to}")


def _all(book: Book, run_id: str) -> Iterator[RunEvent]:
    after = 0
    while page := book.ledger.run_store.fetch_events(run_id, after):
        yield from page
        after = page[-1].run_seq or after


def _line(event: RunEvent) -> str:
    from sealbook.cli.table import cell

    data = (f"{name}={value}" for name, value in event.event_data.items() if value not in (None, [], {}))
    parts = [event.event_type, event.step_id, f"#{event.logical_attempt_id or 1}", *data]
    said = "  ".join(cell(part) for part in parts if part)
    return f"{event.run_seq:>6}  {event.persisted_at:%Y-%m-%d %H:%M:%S}  {said}"
