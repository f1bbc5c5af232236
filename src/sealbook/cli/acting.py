"""`sealbook state retry`, `reprocess` and `backfill`: what is judged or fetched again, or at last."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.options import ActorOption, FormatOption
from sealbook.cli.output import Format
from sealbook.cli.planning import DryRunOption, ForceOption, PlanOption, PlanReasonOption, YesOption, act
from sealbook.cli.selecting import selects
from sealbook.model.plans import PlanKind

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.model.selection import Selection

_RETRY_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state retry google_ads/1234567890/campaign_daily/2026-01-01 --reason "the contract was wrong"
  sealbook state retry --customer-id 123-456-7890 --since 2026-01-01 --reason "the account is back" --dry-run
  sealbook state retry --plan 7
"""

_REPROCESS_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state reprocess google_ads/1234567890/campaign_daily/2026-01-01 --reason "the source restated it"
  sealbook state reprocess --query campaign_daily --day 2026-01-01 --reason "it was cut short" --dry-run
"""

_BACKFILL_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state backfill --since 2025-01-01 --until 2025-12-31 --name year_2025 --reason "new client"
  sealbook state backfill --plan 7 --yes
  sealbook state backfill --query campaign_daily --day 2026-01-01 --force --reason "all of it was wrong"
"""


def add_to(app: typer.Typer) -> None:
    """Give a group these commands."""
    app.command(epilog=_RETRY_EXAMPLES)(retry)
    app.command(epilog=_REPROCESS_EXAMPLES)(reprocess)
    app.command(epilog=_BACKFILL_EXAMPLES)(backfill)


@selects(writes=True, keys=True)
def retry(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    reason: PlanReasonOption = None,
    actor: ActorOption = None,
    plan: PlanOption = None,
    dry_run: DryRunOption = False,
    yes: ForceOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Have failed partitions judged again: they are pending, and their newest sealed run comes first.

    Give keys, or filters, of which only what has failed is taken.
    A partition of which no run is sealed is refused: fetch it by `state backfill`.
    """
    del ctx
    act(
        book, PlanKind.RETRY, selection, partial(book.operator.retry, selection),
        reason=reason, actor=actor, plan_id=plan, dry_run=dry_run, yes=yes, form=form,
    )  # fmt: skip


@selects(writes=True, keys=True)
def reprocess(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    reason: PlanReasonOption = None,
    actor: ActorOption = None,
    plan: PlanOption = None,
    dry_run: DryRunOption = False,
    yes: ForceOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Have another run fetched of partitions that were judged, good or not.

    What is published stays until a new run is accepted; if none is, for good.
    """
    del ctx
    act(
        book, PlanKind.REPROCESS, selection, partial(book.operator.reprocess, selection),
        reason=reason, actor=actor, plan_id=plan, dry_run=dry_run, yes=yes, form=form,
    )  # fmt: skip


@selects(writes=True, keys=True)
def backfill(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What `sealbook backfill` knows it by.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch days again that are good.")] = False,
    reason: PlanReasonOption = None,
    actor: ActorOption = None,
    plan: PlanOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Have days fetched that are not good yet, oldest first, in a lane that starves no fresh data.

    Give keys, or --since and --until. Days that are good, that are being worked on or that have stopped are
    left out, so that it can be given again.
    """
    del ctx
    act(
        book, PlanKind.BACKFILL, selection,
        partial(book.operator.backfill, selection, name=name, force=force),
        reason=reason, actor=actor, plan_id=plan, dry_run=dry_run, yes=yes, form=form,
        besides=force or name is not None,
    )  # fmt: skip
