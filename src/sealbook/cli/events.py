"""`sealbook events`: what a run said, and the whole log as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption, LimitOption
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.retire import RETIRE_EXAMPLES, retire
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.model import RunEvent

app = typer.Typer(
    cls=DefaultGroup,
    help="What a run said, and the whole log as files.\n\n`sealbook events RUN_ID` is short for `show`.",
)

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
    after: Annotated[
        int, typer.Option(metavar="N", min=0, help="Go on behind this number, the last of the page before.")
    ] = 0,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the events of a run, in the order of their numbers.

    With --follow and --format json, each line is one event.
    """
    from sealbook.views.events import archived_events, events_of_run

    with open_book(ctx) as book:
        store, archive = book.ledger.reader.run_store, book.settings.retention.archive
        if follow:
            if not store.fetch_events(run_id, limit=1):
                message(f"There is no event of run {run_id} yet; Ctrl-C ends the wait.")
            older = (each for each in archived_events(store, archive, run_id) if (each.run_seq or 0) > after)
            events = chain(older, store.follow_run(run_id, after))
            wanted: Iterator[RunEvent] = islice(
                (each for each in events if not types or each.event_type in types), limit
            )
        else:
            wanted = events_of_run(store, archive, run_id, types=types or (), after=after, limit=limit)
        if form is Format.TABLE:
            found = False
            for event in wanted:
                found = True
                typer.echo(_line(event))
            if not found:
                message(f"Run {run_id} has no event of this type.")
        elif follow:
            for event in wanted:
                typer.echo(event.to_json())
        else:
            show_json(event.to_dict() for event in wanted)


@app.command(epilog=_EXPORT_EXAMPLES)
def export(
    ctx: typer.Context,
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder.")],
) -> None:
    """Write the whole log as Parquet files, all events of a run in one bucket, for Spark to fold."""
    from sealbook.cli.progress import events_progress
    from sealbook.status.event_log import export_log

    written = 0
    with (
        open_book(ctx) as book,
        events_progress("Exporting", book.ledger.run_store.backlog().events) as show_progress,
    ):
        for written in export_log(book.ledger.run_store, to):
            show_progress(written)
    message(f"Wrote {counted(written, 'event')} to {to}")


app.command(epilog=RETIRE_EXAMPLES)(retire)


def _line(event: RunEvent) -> str:
    from sealbook.cli.table import cell

    attempt = event.logical_attempt_id and f"#{event.logical_attempt_id}"
    # The step of a Partition… event names the partition already.
    members = event.event_data if isinstance(event.event_data, Mapping) else {"data": event.event_data}
    data = (
        f"{name}={value}"
        for name, value in members.items()
        if name != "partition" and value not in (None, [], {})
    )
    said = "  ".join(cell(part) for part in (event.event_type, event.step_id, attempt, *data) if part)
    return f"{event.run_seq:>6}  {event.persisted_at:%Y-%m-%d %H:%M:%S}  {said}"
