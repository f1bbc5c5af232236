"""`sealbook control leases`, `budget` and `pauses`: who works on what, what may be asked, what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption, LimitOption
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.selecting import selects
from sealbook.model.spans import duration_text
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.cli.table import Column
    from sealbook.model.selection import Selection
    from sealbook.views.schedule import BudgetLine, LaneRow, LeaseRow, PauseRow

_LANES_EXAMPLES = """
[bold]Examples[/bold]
  sealbook control lanes
  sealbook control lanes --source google_ads --format json
"""
_LEASES_EXAMPLES = """
[bold]Examples[/bold]
  sealbook control leases
  sealbook control leases --expired --format json
"""
_BUDGET_EXAMPLES = """
[bold]Examples[/bold]
  sealbook control budget
"""
_PAUSES_EXAMPLES = """
[bold]Examples[/bold]
  sealbook control pauses
"""


def add_to(app: typer.Typer) -> None:
    """Give a group these commands."""
    app.command(epilog=_LANES_EXAMPLES)(lanes)
    app.command(epilog=_LEASES_EXAMPLES)(leases)
    app.command(epilog=_BUDGET_EXAMPLES)(budget)
    app.command(epilog=_PAUSES_EXAMPLES)(pauses)


@selects()
def lanes(
    ctx: typer.Context, book: BookReader, selection: Selection, form: FormatOption = Format.TABLE
) -> None:
    """Show what is open in each lane: ready, waiting for its time, being worked on, paused or stopped."""
    from sealbook.views.schedule import lane_rows

    del ctx
    rows = lane_rows(book.ledger, book.settings, selection)
    if form is Format.JSON:
        show_json(each.to_dict() for each in rows)
    else:
        from sealbook.cli.table import print_table

        print_table(rows, _lane_columns())


def leases(
    ctx: typer.Context,
    expired: Annotated[bool, typer.Option("--expired", help="Only leases that have run out.")] = False,
    lane: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this lane; may be given again.")
    ] = None,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show who works on which partitions: since when, until when, and under which fence.

    A lease that has run out is free for all: whoever asks for work next takes it over.
    """
    from sealbook.views.schedule import lease_rows

    with open_book(ctx) as book:
        rows = lease_rows(book.ledger.reader, limit, expired=expired, lanes=lane or ())
    if form is Format.JSON:
        show_json(each.to_dict() for each in rows)
    else:
        from sealbook.cli.table import print_table

        print_table(rows, _lease_columns())
    holders = len({each.holder for each in rows})
    ran_out = sum(each.expired for each in rows)
    message(
        f"{counted(len(rows), 'partition')} held by {counted(holders, 'holder')}"
        + (f"; {counted(ran_out, 'lease', 'has', 'have')} run out" if ran_out else "")
        if rows
        else "Nobody works on anything."
    )


def budget(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """Show how many requests each source was asked in the last 24 hours, by lane, and what is left.

    What is reserved by work in progress counts. A lane has its share for itself and borrows what others do
    not need; without `requests_per_day` there is no bound.
    """
    from sealbook.views.schedule import budget_lines

    with open_book(ctx) as book:
        rows = budget_lines(book.ledger.reader, book.settings)
    if form is Format.JSON:
        show_json(each.to_dict() for each in rows)
    else:
        from sealbook.cli.table import print_table

        print_table(rows, _budget_columns())
    for each in {row.source: row for row in rows}.values():
        if each.requests_per_day is None:
            message(f"{each.source}: no budget (control.sources.{each.source}.requests_per_day).")
        else:
            opens = "" if each.next_room_at is None else f"; more from {each.next_room_at:%H:%M} UTC on"
            message(f"{each.source}: {each.left:,} of {each.requests_per_day:,} left{opens}.")


def pauses(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """Show what is paused: by whom, why, since when, and until when."""
    from sealbook.views.schedule import pause_rows

    with open_book(ctx) as book:
        rows = pause_rows(book.ledger.reader)
    if form is Format.JSON:
        show_json(each.to_dict() for each in rows)
    else:
        from sealbook.cli.table import print_table

        print_table(rows, _pause_columns())
    message(f"{counted(len(rows), 'pause')}." if rows else "Nothing is paused.")


def _lane_columns() -> list[Column[LaneRow]]:
    from sealbook.cli.table import Column

    return [
        Column("lane", lambda each: each.lane),
        Column("share", lambda each: each.share, number=True),
        Column("ready", lambda each: f"{each.ready:,}", number=True),
        Column("waiting", lambda each: f"{each.waiting:,}", number=True),
        Column("held", lambda each: f"{each.held:,}", number=True),
        Column("paused", lambda each: f"{each.paused:,}", number=True),
        Column("stopped", lambda each: f"{each.stopped:,}", number=True),
    ]


def _lease_columns() -> list[Column[LeaseRow]]:
    from sealbook.cli.table import Column

    return [
        Column("holder", lambda each: each.holder),
        Column("partition", lambda each: each.key),
        Column("lane", lambda each: each.lane, spare=1),
        Column("work", lambda each: each.kind, spare=1),
        Column("for", lambda each: duration_text(each.held_seconds), number=True),
        Column(
            "lease",
            lambda each: "ran out" if each.expired else f"{duration_text(each.left_seconds)} left",
            style=lambda each: "red" if each.expired else "",
        ),
        Column("fence", lambda each: each.fence, spare=2, number=True),
    ]


def _budget_columns() -> list[Column[BudgetLine]]:
    from sealbook.cli.table import Column

    return [
        Column("source", lambda each: each.source),
        Column("lane", lambda each: each.lane),
        Column("used", lambda each: f"{each.used:,}", number=True),
        Column("share", lambda each: None if each.share is None else f"{each.share:,}", number=True),
    ]


def _pause_columns() -> list[Column[PauseRow]]:
    from sealbook.cli.table import Column

    return [
        Column("scope", lambda each: each.scope),
        Column("cause", lambda each: each.cause, style=lambda _: "yellow"),
        Column("since (UTC)", lambda each: each.since, spare=1),
        Column("until (UTC)", lambda each: each.until or "it resumes"),
        Column("by", lambda each: each.actor),
        Column("why", lambda each: each.reason, wraps=True),
    ]
