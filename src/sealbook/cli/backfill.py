"""`sealbook backfill`: how far backfills are, and how they are paused, cancelled and taken up again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import open_book
from sealbook.cli.options import ActorOption, FormatOption, ReasonOption, user_name
from sealbook.cli.output import Format, message, show_deed, show_json, show_object
from sealbook.cli.planning import YesOption, confirm
from sealbook.model.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sealbook.cli.table import Column
    from sealbook.views.backfills import BackfillRow

app = typer.Typer(
    cls=DefaultGroup,
    help="How far backfills are; `state backfill` begins one.\n\n`sealbook backfill` is short for `list`.",
)

_LIST_EXAMPLES = """
[bold]Examples[/bold]
  sealbook backfill
  sealbook backfill list --format json
"""
_EXAMPLES = """
[bold]Examples[/bold]
  sealbook backfill {0} year_2025{1}
"""
_SAYS_WHY = ' --reason "the source is slow today"'

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The backfill: its name, or the number of its plan.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]

_SHOWN = 20
_STYLES = {"open": "cyan", "paused": "yellow", "cancelled": "red", "done": "green"}


@app.command("list", epilog=_LIST_EXAMPLES)
def list_(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most so many.")] = 20,
    before: Annotated[
        int | None,
        typer.Option(metavar="PLAN", min=1, help="Go on behind this plan, the last of the page before."),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List backfills, the latest first, with their progress."""
    from sealbook.views.backfills import backfill_rows

    with open_book(ctx) as book:
        rows = backfill_rows(book.ledger.reader, limit, before)
    if form is Format.JSON:
        show_json(each.to_dict() for each in rows)
    else:
        _print(rows)
    if not rows:
        message("There is no backfill yet: sealbook state backfill begins one.")


@app.command(epilog=_EXAMPLES.format("show", ""))
def show(ctx: typer.Context, name: NameArgument, form: FormatOption = Format.TABLE) -> None:
    """Show how far a backfill is, and what of it has failed."""
    from sealbook.views.backfills import BackfillRow, failures_of

    with open_book(ctx) as book:
        found = book.operator.find_backfill(name)
        failures = failures_of(book.ledger.reader, found.plan.id)
    row = BackfillRow.of(found)
    if form is Format.JSON:
        show_object({**row.to_dict(), "failed": [each.to_dict() for each in failures]})
    else:
        from sealbook.cli.table import Column, print_table

        _print([row])
        columns: list[Column[Any]] = [
            Column("partition", lambda each: each.key),
            Column("tries", lambda each: each.tries, number=True),
            Column("next try (UTC)", lambda each: each.next_at or each.stop, spare=1),
            Column("error", lambda each: each.error, style=lambda _: "red", wraps=True),
        ]
        if failures:
            typer.echo()
            print_table(failures[:_SHOWN], columns)
            if len(failures) > _SHOWN:
                message(f"… and {len(failures) - _SHOWN:,} more; --format json shows all.")
    message(f"{row.title}, by {row.actor}: {row.reason}. {row.says}")
    if failures and row.state in ("open", "paused"):
        message(f"To take up what failed at once: sealbook backfill retry {row.reference} --reason '…'")


@app.command(epilog=_EXAMPLES.format("pause", _SAYS_WHY))
def pause(
    ctx: typer.Context,
    name: NameArgument,
    reason: ReasonOption,
    actor: ActorOption = None,
    dry_run: DryRunOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Begin nothing more of a backfill until it resumes; what is being worked on goes on."""
    _change(ctx, "pause", name, reason, actor, dry_run, form)


@app.command(epilog=_EXAMPLES.format("resume", _SAYS_WHY))
def resume(
    ctx: typer.Context,
    name: NameArgument,
    reason: ReasonOption,
    actor: ActorOption = None,
    dry_run: DryRunOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Go on with a backfill that was paused."""
    _change(ctx, "resume", name, reason, actor, dry_run, form)


@app.command(epilog=_EXAMPLES.format("cancel", _SAYS_WHY))
def cancel(
    ctx: typer.Context,
    name: NameArgument,
    reason: ReasonOption,
    actor: ActorOption = None,
    dry_run: DryRunOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Fetch no more of a backfill: who works on some of it loses it, and what is done stays done.

    What it leaves undone is terminal until another backfill, or `state terminal clear`, takes it up.
    """
    _change(ctx, "cancel", name, reason, actor, dry_run, form)


@app.command(epilog=_EXAMPLES.format("retry", _SAYS_WHY))
def retry(
    ctx: typer.Context,
    name: NameArgument,
    reason: ReasonOption,
    actor: ActorOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Take up at once what has failed of a backfill: what waits for another try, and what has stopped."""
    who = actor or user_name()
    with open_book(ctx) as book:
        keys = book.operator.retry_backfill(name, actor=who, reason=reason, dry_run=True)
        if not dry_run:
            confirm(len(keys), yes=yes, again=f"sealbook backfill retry {name} --reason '…' --yes")
            keys = book.operator.retry_backfill(name, actor=who, reason=reason)
    if form is Format.JSON:
        show_object({"name": name, "partitions": [str(key) for key in keys], "dry_run": dry_run})
    would = "would be" if dry_run else ("is" if len(keys) == 1 else "are")
    message(f"{counted(len(keys), 'partition')} {would} taken up again." if keys else "Nothing has failed.")


def _change(
    ctx: typer.Context, verb: str, name: str, reason: str, actor: str | None, dry_run: bool, form: Format
) -> None:
    from sealbook.views.deeds import backfill_changed

    who = actor or user_name()
    with open_book(ctx) as book:
        operator = book.operator
        if dry_run:
            found = operator.find_backfill(name)
        else:
            found = getattr(operator, f"{verb}_backfill")(name, actor=who, reason=reason)
    show_deed(backfill_changed(found, dry_run=dry_run), form)


def _print(rows: Sequence[BackfillRow]) -> None:
    from sealbook.cli.table import Column, print_table

    columns: list[Column[BackfillRow]] = [
        Column("plan", lambda each: each.plan_id, number=True),
        Column("name", lambda each: each.name),
        Column("state", lambda each: each.state, style=lambda each: _STYLES.get(each.state, "")),
        Column("partitions", lambda each: f"{each.partitions:,}", number=True),
        Column("done", lambda each: f"{each.done:,}", number=True),
        Column("open", lambda each: f"{each.waiting:,}", number=True),
        Column("at work", lambda each: f"{each.held:,}", number=True),
        Column(
            "stopped",
            lambda each: f"{each.stopped:,}",
            number=True,
            style=lambda each: "red" if each.stopped else "",
        ),
        Column("since (UTC)", lambda each: each.carried_out_at, spare=2),
        Column("by", lambda each: each.actor, spare=1),
        Column("reason", lambda each: each.reason, spare=3, wraps=True),
    ]
    print_table(rows, columns)
