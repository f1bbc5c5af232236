"""`sealbook state`: what is safe to consume, and how it came to be so."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli import acting, pausing, terminal
from sealbook.cli.invocation import open_book
from sealbook.cli.options import (
    ActorOption,
    ConfirmOption,
    FormatOption,
    KeyArgument,
    LimitOption,
    ReasonOption,
    is_confirmed,
    parsed_by,
    user_name,
)
from sealbook.cli.output import Format, flat, message, show_json
from sealbook.cli.selecting import selects
from sealbook.model import RunId, Status
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.cli.table import Column
    from sealbook.model.selection import Selection
    from sealbook.views.states import InspectedState

app = typer.Typer(help="What is safe to consume, and how it came to be so.", no_args_is_help=True)

STATUS_STYLES = {Status.SUCCESS: "green", Status.FAILED: "red", Status.PENDING: "yellow"}

_INSPECT_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state inspect
  sealbook state inspect google_ads/123-456-7890/campaign_daily/2026-01-01
  sealbook state inspect --status failed --since 2026-01-01 --until 2026-01-31
  sealbook state inspect --customer-id 1234567890 --format json
"""

_ROLLBACK_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state rollback google_ads/1234567890/campaign_daily/2026-01-01 \
      --to 01J8ZQ6T5N8W3Y2V7R4K9M0XCE --reason "the reload doubled clicks"
  sealbook state rollback google_ads/1234567890/campaign_daily/2026-01-01 \
      --to 01J8ZQ6T5N8W3Y2V7R4K9M0XCE --reason "to see" --dry-run --format json
"""

_HISTORY_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state history google_ads/1234567890/campaign_daily/2026-01-01
  sealbook state history google_ads/1234567890/campaign_daily/2026-01-01 --format json
"""


@app.command(epilog=_INSPECT_EXAMPLES)
@selects(keys=True, statuses=True)
def inspect(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List partitions with their status and current run.

    Give keys, or filters, or neither.
    A partition that nobody has judged is pending: it is shown when asked for by key, or when an
    attempt at it failed.
    """
    from sealbook.views.states import StateListing

    del ctx
    listing = StateListing(book.ledger, selection, limit)
    if form is Format.JSON:
        show_json(each.to_dict() for each in listing)
    else:
        from sealbook.cli.table import print_table

        print_table(listing, _state_columns())
    _summarise(listing.counts)
    if listing.total is not None:
        message(f"--limit: these are the first of {listing.total:,}")


@app.command(epilog=_HISTORY_EXAMPLES)
def history(ctx: typer.Context, key: KeyArgument, form: FormatOption = Format.TABLE) -> None:
    """Show every judgement of a partition, oldest first, with its evidence."""
    with open_book(ctx) as book:
        attempts = book.ledger.attempts(key)
        state = book.ledger.state(key)
    if form is Format.JSON:
        show_json(map(flat, attempts))
    else:
        from sealbook.cli.evidence import print_attempts

        print_attempts(attempts)
    current = f", current run {state.current_run_id}" if state.current_run_id else ""
    message(f"{key} is {state.status}{current}; attempts: {state.attempt_count}")


@app.command(epilog=_ROLLBACK_EXAMPLES)
def rollback(
    ctx: typer.Context,
    key: KeyArgument,
    to: Annotated[
        RunId,
        typer.Option("--to", metavar="ULID", help="The run that gets authority.", parser=parsed_by(RunId)),
    ],
    reason: ReasonOption,
    actor: ActorOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    confirm: ConfirmOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Give authority to another run of a partition, one that was accepted and is still sealed.

    It holds: only a run that is newer than all that the partition has takes authority by itself then.
    A mistaken one is undone by rolling to the other run. Consumers follow at once.
    """
    with open_book(ctx) as book:
        done = book.rollback(
            key, to, actor=actor or user_name(), reason=reason, dry_run=dry_run,
            irreplaceable=is_confirmed(confirm),
        )  # fmt: skip
    from sealbook.views.deeds import rolled_back

    deed = rolled_back(done, to, dry_run=dry_run)
    if form is Format.JSON:
        show_json([deed.content])
    message(deed.text)


acting.add_to(app)
pausing.add_to(app)
app.add_typer(terminal.app, name="terminal")


def _state_columns() -> list[Column[InspectedState]]:
    from sealbook.cli.table import Column

    return [
        Column("partition", lambda each: each.state.key),
        Column("status", lambda each: each.state.status, style=lambda each: STATUS_STYLES[each.state.status]),
        Column("attempts", lambda each: each.state.attempt_count, spare=1, number=True),
        Column("records", lambda each: each.state.record_count, spare=4, number=True),
        Column("schema", lambda each: each.state.schema_version, spare=5),
        Column("current run", lambda each: each.state.current_run_id, spare=2),
        Column("updated (UTC)", lambda each: each.state.updated_at, spare=3),
        Column("next (UTC)", lambda each: each.outlook and each.outlook.in_short, spare=1),
        Column("error", lambda each: each.error, style=lambda _: "red", wraps=True),
    ]


def _summarise(counts: Counter[Status]) -> None:
    from rich.text import Text

    line = Text(counted(counts.total(), "partition"))
    for index, (status, style) in enumerate(STATUS_STYLES.items()):
        line.append(": " if index == 0 else ", ")
        line.append(f"{counts[status]:,} {status}", style if counts[status] else "dim")
    message(line)
