"""`sealbook state terminal`: what is given up or parked, and how it is taken up again (R-CTL-5)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import typer

from sealbook.cli.options import ActorOption, FormatOption, LimitOption
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.planning import DryRunOption, ForceOption, PlanOption, PlanReasonOption, act
from sealbook.cli.selecting import selects
from sealbook.model.plans import PlanKind
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import Book, BookReader
    from sealbook.cli.table import Column
    from sealbook.model.selection import Selection
    from sealbook.views.stopped import StoppedRow

app = typer.Typer(help="What is given up or parked, and how it is taken up again.", no_args_is_help=True)

_LIST_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state terminal list
  sealbook state terminal list --customer-id 123-456-7890 --format json
"""
_MARK_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state terminal mark google_ads/1234567890/campaign_daily/2026-01-01 --reason "the source lost it"
"""
_CLEAR_EXAMPLES = """
[bold]Examples[/bold]
  sealbook state terminal clear --customer-id 123-456-7890 --reason "the account is back"
"""


@app.command("list", epilog=_LIST_EXAMPLES)
@selects(keys=True)
def list_(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List partitions that nothing more is tried of by itself: since when, why, and who said so.

    Terminal ones are given up: they failed too often, are too old, or somebody said so. Parked ones failed
    for good, and are tried again once the configuration changes.
    """
    from sealbook.views.stopped import StoppedRow

    del ctx
    counts: Counter[str] = Counter()
    found = map(StoppedRow.of, book.ledger.schedule.open_work(selection, stopped=True))
    rows = list(islice(found, limit))
    counts.update(each.kind for each in rows)
    if form is Format.JSON:
        show_json(each.to_dict() for each in rows)
    else:
        from sealbook.cli.table import print_table

        print_table(rows, _columns())
    message(
        f"{counted(len(rows), 'partition')}: {counts['terminal']:,} terminal, {counts['parked']:,} parked"
        + ("; --limit: there may be more" if len(rows) == limit else "")
    )


@app.command(epilog=_MARK_EXAMPLES)
@selects(writes=True, keys=True)
def mark(
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
    """Give partitions up that are open or have failed; who works on one loses it.

    It is no status: what is published stays, and what is judged of it by hand still counts.
    """
    del ctx
    act(
        book, PlanKind.MARK, selection, partial(book.operator.mark, selection),
        reason=reason, actor=actor, plan_id=plan, dry_run=dry_run, yes=yes, form=form,
    )  # fmt: skip


@app.command(epilog=_CLEAR_EXAMPLES)
@selects(writes=True, keys=True)
def clear(
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
    """Take up what is terminal or parked, at once; its failures so far do not count any more."""
    del ctx
    act(
        book, PlanKind.CLEAR, selection, partial(book.operator.clear, selection),
        reason=reason, actor=actor, plan_id=plan, dry_run=dry_run, yes=yes, form=form,
    )  # fmt: skip


def _columns() -> list[Column[StoppedRow]]:
    from sealbook.cli.table import Column

    return [
        Column("partition", lambda each: each.key),
        Column("", lambda each: each.kind, style=lambda each: "red" if each.kind == "terminal" else "yellow"),
        Column("why", lambda each: each.why),
        Column("tries", lambda each: each.tries, spare=2, number=True),
        Column("since (UTC)", lambda each: each.since, spare=3),
        Column("by", lambda each: each.actor, spare=1),
        Column("error", lambda each: each.error, style=lambda _: "red", wraps=True),
    ]
