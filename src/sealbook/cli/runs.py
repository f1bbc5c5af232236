"""`sealbook runs`: what runs there were, and what came of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json

if TYPE_CHECKING:
    from sealbook.ledger.events import ProjectedRun

app = typer.Typer()

_STYLES = {"COMPLETED": "green", "FAILED": "red", "CANCELLED": "red", "RUNNING": "cyan", "PAUSED": "yellow"}

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook runs
  sealbook runs --limit 100 --format json
"""


@app.command(epilog=_EXAMPLES)
def runs(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most so many.")] = 20,
    form: FormatOption = Format.TABLE,
) -> None:
    """List runs, the latest first, with status, duration and counts."""
    with open_book(ctx) as book:
        book.ledger.run_store.projector().catch_up()
        found = book.ledger.run_store.list_runs(limit)
    if form is Format.JSON:
        show_json(_members(each) for each in found)
    else:
        _print_runs(found)
    if not found:
        message("No run has said anything yet.")


def _print_runs(found: list[ProjectedRun]) -> None:
    from sealbook.cli.table import Column, print_table

    columns: list[Column[ProjectedRun]] = [
        Column("run", lambda each: each.snapshot.run_id),
        Column(
            "status",
            lambda each: each.snapshot.status,
            style=lambda each: _STYLES.get(each.snapshot.status.value, ""),
        ),
        Column("started (UTC)", lambda each: each.snapshot.started_at, spare=2),
        Column("duration", lambda each: _duration(each), spare=1, number=True),
        Column("sealed", lambda each: each.snapshot.counters.partitions_sealed, number=True),
        Column("failed", lambda each: each.snapshot.counters.partitions_failed, number=True),
        Column("accepted", lambda each: each.snapshot.counters.partitions_accepted, number=True),
        Column("rejected", lambda each: each.snapshot.counters.partitions_rejected, number=True),
        Column("published", lambda each: each.snapshot.counters.partitions_published, number=True),
        Column("remarks", _remarks, style=lambda _: "red", spare=3, wraps=True),
    ]
    print_table(found, columns)


def _members(run: ProjectedRun) -> dict[str, object]:
    duration = run.snapshot.duration
    seconds = None if duration is None else duration.total_seconds()
    return {**run.snapshot.to_dict(), "durationSeconds": seconds, "stale": run.stale}


def _remarks(run: ProjectedRun) -> str:
    skipped = len(run.snapshot.inconsistent)
    remarks = [
        run.snapshot.error,
        f"inconsistent (events skipped: {skipped})" if skipped else None,
        "stale: to be read again" if run.stale else None,
    ]
    return "; ".join(filter(None, remarks))


def _duration(run: ProjectedRun) -> str:
    duration = run.snapshot.duration
    if duration is None:
        return ""
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
