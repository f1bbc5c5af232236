"""How every command that acts on many partitions goes: it shows its plan, asks if that is much, does it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.options import user_name
from sealbook.cli.output import Format, message, show_object
from sealbook.errors import InvalidInput
from sealbook.model.plans import PlanKind
from sealbook.views.plans import MANY, carry_out_command, done_text, notes_of, plan_dict, plan_text

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.control.previews import Preview
    from sealbook.model.plans import PlanItem
    from sealbook.model.selection import Selection

_SHOWN = 20

PlanReasonOption = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is kept in the log.")
]
PlanOption = Annotated[
    int | None,
    typer.Option("--plan", metavar="ID", min=1, help="Carry out this plan, which was shown before."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show the plan, and keep it by its id.")]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help=f"Do not ask before more than {MANY} partitions.")
]
ForceOption = Annotated[
    bool, typer.Option("--yes", "-y", "--force", help=f"Do not ask before more than {MANY} partitions.")
]


def act(
    book: Book,
    kind: PlanKind,
    selection: Selection,
    preview: Callable[..., Preview],
    *,
    reason: str | None,
    actor: str | None,
    plan_id: int | None,
    dry_run: bool,
    yes: bool,
    form: Format,
    besides: bool = False,
) -> None:
    """Preview what is chosen, or take the plan that is named; show it, and carry it out unless dry."""
    who = actor or user_name()
    if plan_id is not None:
        if besides or not selection.is_everything or reason is not None:
            raise InvalidInput(
                "a plan is named, and something else is asked for besides",
                field="plan",
                remedy="Give --plan alone: it has its partitions and its reason.",
            )
        shown = _named(book, kind, plan_id)
    elif reason is None:
        raise InvalidInput(
            "it has to be said why", field="reason", remedy="Give --reason; it is kept in the log."
        )
    else:
        shown = preview(actor=who, reason=reason)
    if form is Format.TABLE:
        _print_items(shown.items)
    _say(shown)
    done = bool(shown.items) and not dry_run
    if done:
        confirm(shown.plan.partitions, yes=yes, again=carry_out_command(shown.plan, yes=True))
        book.operator.carry_out(shown.plan.id, actor=who)
    if form is Format.JSON:
        show_object(plan_dict(shown, carried_out=done or None))
    _say_done(shown, done=done, dry_run=dry_run)
    if shown.refused:
        raise typer.Exit(ExitCode.DONE_IN_PART if shown.items else ExitCode.FAILED)


def confirm(partitions: int, *, yes: bool, again: str) -> None:
    """Ask the person at the terminal whether so much is meant; without one, refuse it unless told so."""
    if yes or partitions <= MANY:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(
            f"that are {partitions:,} partitions, and nobody is there to be asked",
            remedy=f"Nothing was done. If it is meant: {again}",
        )
    typed = typer.prompt(f"Type {partitions} to go on", default="", show_default=False, err=True)
    if typed.strip() != str(partitions):
        message(f"Nothing was done. To do it later: {again}")
        raise typer.Exit(ExitCode.FAILED)


def _named(book: Book, kind: PlanKind, plan_id: int) -> Preview:
    """Return the plan that is named, if it is one of this command's."""
    shown = book.operator.previewed(plan_id)
    if shown.plan.kind is not kind:
        raise InvalidInput(
            f"plan {plan_id} is a {shown.plan.kind}",
            field="plan",
            remedy=f"Carry it out by: {carry_out_command(shown.plan)}",
        )
    return shown


def _print_items(items: tuple[PlanItem, ...]) -> None:
    from sealbook.cli.table import Column, print_table

    if not items:
        return
    columns: list[Column[PlanItem]] = [
        Column("partition", lambda each: each.key),
        Column("stands", lambda each: each.shown_standing),
    ]
    print_table(items[:_SHOWN], columns)
    if len(items) > _SHOWN:
        message(f"… and {len(items) - _SHOWN:,} more; --format json shows all.")


def _say(shown: Preview) -> None:
    if shown.items:
        message(plan_text(shown.plan))
    for line in notes_of(shown):
        message(f"  {line}")
    for each in shown.refused:
        message(f"  {each.key} is refused: {each.why}. {each.remedy}")


def _say_done(shown: Preview, *, done: bool, dry_run: bool) -> None:
    plan = shown.plan
    if done:
        message(done_text(plan))
        if plan.kind is PlanKind.BACKFILL:
            message(f"To see how far it is: sealbook backfill show {plan.name or plan.id}")
    elif not shown.items:
        message("There is nothing to do.")
    elif dry_run:
        message(f"Nothing was done. To do it: {carry_out_command(plan)}")
