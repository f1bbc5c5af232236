"""`sealbook runs`: what runs there were, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json

if TYPE_CHECKING:
    from sealbook.views.runs import RunRow

app = typer.Typer(
    cls=DefaultGroup,
    help="What runs there were, and what came of them."
    "\n\n`sealbook runs` is short for `list`, which has --limit and --format.",
)

_STYLES = {"COMPLETED": "green", "FAILED": "red", "CANCELLED": "red", "RUNNING": "cyan", "PAUSED": "yellow"}

_LIST_EXAMPLES = """
[bold]Examples[/bold]
  sealbook runs
  sealbook runs --limit 100 --format json
"""


@app.callback()
def _runs() -> None:
    """Make this a group, though it has one command."""


@app.command("list", epilog=_LIST_EXAMPLES)
def list_(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most so many.")] = 20,
    before: Annotated[
        str | None,
        typer.Option(metavar="RUN_ID", help="Go on behind this run, the last of the page before."),
    ] = None,
    statuses: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="NAME", help="Only runs of this status; may be given again."),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List runs, the latest first, with status, duration and counts."""
    from sealbook.views.runs import list_runs

    with open_book(ctx) as book:
        book.ledger.projector().catch_up()
        found = list_runs(book.ledger.reader.run_store, limit, before, statuses or ())
    if form is Format.JSON:
        show_json(each.to_dict() for each in found)
    else:
        _print_runs(found)
    if not found:
        message("There is no run yet." if before is None and not statuses else "There is none.")


def _print_runs(found: Sequence[RunRow]) -> None:
    from sealbook.cli.table import Column, print_table

    columns: list[Column[RunRow]] = [
        Column("run", lambda each: each.snapshot.run_id),
        Column(
            "status",
            lambda each: each.snapshot.status,
            style=lambda each: _STYLES.get(each.snapshot.status.value, ""),
        ),
        Column("started (UTC)", lambda each: each.snapshot.started_at, spare=2),
        Column("duration", lambda each: _duration(each.duration), spare=1, number=True),
        Column("sealed", lambda each: each.snapshot.counters.partitions_sealed, number=True),
        Column("failed", lambda each: each.snapshot.counters.partitions_failed, number=True),
        Column("accepted", lambda each: each.snapshot.counters.partitions_accepted, number=True),
        Column("rejected", lambda each: each.snapshot.counters.partitions_rejected, number=True),
        Column("published", lambda each: each.snapshot.counters.partitions_published, number=True),
        Column("remarks", lambda each: "; ".join(each.remarks), style=lambda _: "red", spare=3, wraps=True),
    ]
    print_table(found, columns)


def _duration(duration: timedelta | None) -> str:
    if duration is None:
        return ""
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
