"""`sealbook state pause`, `resume` and `cancel`: what is not begun for now, and a run that is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import ActorOption, FormatOption, ReasonOption, RunIdArgument, user_name
from sealbook.cli.output import Format, show_deed
from sealbook.model.keys import normalise_customer_id
from sealbook.views.choosing import parse_end

if TYPE_CHECKING:
    from sealbook.ledger.schedule.pauses import Scope

_PAUSE_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state pause --source google_ads --until 2h --reason "the API is down"
  sealbook state pause --source google_ads --customer-id 123-456-7890 --reason "the client asked for it"
"""
_RESUME_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state resume --source google_ads --reason "the API is back"
"""
_CANCEL_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state cancel 01J8ZQ6T5N8W3Y2V7R4K9M0XCE --reason "wrong week"
  sealbook state cancel 01J8ZQ6T5N8W3Y2V7R4K9M0XCE --reason "to see" --dry-run --format json
"""

SourceOption = Annotated[str, typer.Option(metavar="NAME", help="The source.")]
CustomerOption = Annotated[
    str | None,
    typer.Option("--customer-id", "--customer", metavar="ID", help="Only this customer; hyphens are fine."),
]
QueryOption = Annotated[
    str | None, typer.Option("--query-name", "--query", metavar="NAME", help="Only this query.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def add_to(app: typer.Typer) -> None:
    """Give a group these commands."""
    app.command(epilog=_PAUSE_EXAMPLES)(pause)
    app.command(epilog=_RESUME_EXAMPLES)(resume)
    app.command(epilog=_CANCEL_EXAMPLES)(cancel)


def pause(
    ctx: typer.Context,
    source: SourceOption,
    reason: ReasonOption,
    customer: CustomerOption = None,
    query: QueryOption = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Until then: 2h, 3d, or a time such as 2026-01-31T06:00Z."),
    ] = None,
    actor: ActorOption = None,
    dry_run: DryRunOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Begin nothing more of a source, or of a customer or a query of it; what is being done goes on.

    It holds until --until, or until `state resume` of the same. `control pauses` lists what is paused.
    """
    scope, who = _scope(source, customer, query), actor or user_name()
    end = None if until is None else parse_end("until", until)
    with open_book(ctx) as book:
        book.check(scope.selection)
        waiting = sum(1 for _ in book.ledger.reader.schedule.open_work(scope.selection))
        if not dry_run:
            book.operator.pause(scope, actor=who, reason=reason, until=end)
    from sealbook.views.deeds import paused

    show_deed(paused(scope, end, waiting, dry_run=dry_run), form)


def resume(
    ctx: typer.Context,
    source: SourceOption,
    reason: ReasonOption,
    customer: CustomerOption = None,
    query: QueryOption = None,
    actor: ActorOption = None,
    dry_run: DryRunOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Go on with what was paused: name it as it was paused. A pause for a quota ends too."""
    scope, who = _scope(source, customer, query), actor or user_name()
    with open_book(ctx) as book:
        before = [each.scope for each in book.ledger.reader.schedule.pauses()]
        if not dry_run:
            book.operator.resume(scope, actor=who, reason=reason)
    from sealbook.views.deeds import resumed

    show_deed(resumed(scope, before, dry_run=dry_run), form)


def cancel(
    ctx: typer.Context,
    run_id: RunIdArgument,
    reason: ReasonOption,
    actor: ActorOption = None,
    dry_run: DryRunOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Stop a run on purpose: what it has yet to do will not be done.

    What it has published stays. A command that works on the run goes on with what it has begun.
    """
    with open_book(ctx) as book:
        left = book.operator.cancel(run_id, actor=actor or user_name(), reason=reason, dry_run=dry_run)
    from sealbook.views.deeds import cancelled

    show_deed(cancelled(run_id, left, dry_run=dry_run), form)


def _scope(source: str, customer: str | None, query: str | None) -> Scope:
    from sealbook.ledger.schedule.pauses import Scope

    return Scope(source, None if customer is None else normalise_customer_id(customer), query)
