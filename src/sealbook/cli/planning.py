"""How every command that acts on many partitions goes: it shows its plan, asks if that is much, does it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.options import user_name
from sealbook.cli.output import Format, message, show_object
from sealbook.errors import InvalidInput
from sealbook.model.plans import LeftOut, PlanKind
from sealbook.model.spans import duration_text
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.control.operating import Preview
    from sealbook.model.plans import PlanItem
    from sealbook.model.selection import Selection

MANY = 20
"""Above so many partitions somebody has to say that it is meant (R-CTL-8)."""
_SHOWN = 20

COMMANDS = {
    PlanKind.RETRY: "state retry",
    PlanKind.REPROCESS: "state reprocess",
    PlanKind.BACKFILL: "state backfill",
    PlanKind.MARK: "state terminal mark",
    PlanKind.CLEAR: "state terminal clear",
}
_DONE = {
    PlanKind.RETRY: "pending again, to be judged by a control loop or by sealbook validate",
    PlanKind.REPROCESS: "to be fetched again by a control loop; what is published stays meanwhile",
    PlanKind.BACKFILL: "to be fetched by a control loop",
    PlanKind.MARK: "given up: nothing more is tried before sealbook state terminal clear",
    PlanKind.CLEAR: "taken up again",
}

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
        confirm(shown.plan.partitions, yes=yes, again=f"{COMMANDS[kind]} --plan {shown.plan.id} --yes")
        book.operator.carry_out(shown.plan.id, actor=who)
    if form is Format.JSON:
        show_object(_as_dict(shown, carried_out=done))
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
            remedy=f"Nothing was done. If it is meant: sealbook {again}",
        )
    typed = typer.prompt(f"Type {partitions} to go on", default="", show_default=False, err=True)
    if typed.strip() != str(partitions):
        message(f"Nothing was done. To do it later: sealbook {again}")
        raise typer.Exit(ExitCode.FAILED)


def _named(book: Book, kind: PlanKind, plan_id: int) -> Preview:
    """Return the plan that is named, if it is one of this command's."""
    shown = book.operator.previewed(plan_id)
    if shown.plan.kind is not kind:
        raise InvalidInput(
            f"plan {plan_id} is a {shown.plan.kind}",
            field="plan",
            remedy=f"Carry it out by: sealbook {COMMANDS[shown.plan.kind]} --plan {plan_id}",
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
    plan = shown.plan
    if shown.items:
        cost = f", {counted(plan.requests, 'request')} at most" if plan.requests else ""
        message(f"Plan {plan.id}: {plan.kind} of {counted(plan.partitions, 'partition')}{cost}.")
    for line in (*_left_out(shown), *_estimates(shown)):
        message(f"  {line}")
    for each in shown.refused:
        message(f"  {each.key} is refused: {each.why}. {each.remedy}")


def _left_out(shown: Preview) -> list[str]:
    ways = {
        LeftOut.GOOD: "good: --force fetches them again",
        LeftOut.OPEN: "being worked on, or in another plan",
        LeftOut.STOPPED: "given up or parked: sealbook state terminal list",
    }
    said = [
        f"Left out: {counted(shown.left_out[why], 'partition', 'is', 'are')} {way}."
        for why, way in ways.items()
        if shown.left_out.get(why)
    ]
    if shown.not_over:
        said.append(f"Left out: {counted(shown.not_over, 'partition')} of days that are not over yet.")
    return said


def _estimates(shown: Preview) -> list[str]:
    if shown.estimate is None:
        return []
    said = []
    if shown.estimate.by_pace is not None:
        pace = duration_text(shown.estimate.by_pace.total_seconds())
        said.append(f"About {pace} by the pace of the last runs.")
    said += (
        f"{each.source}: {counted(each.requests, 'request')} of {each.requests_per_day:,} a day, of which"
        f" {each.share:.0%} are for backfills: {duration_text(each.days * 86_400)} if nothing is lent."
        for each in shown.estimate.budgets
    )
    return said


def _say_done(shown: Preview, *, done: bool, dry_run: bool) -> None:
    plan = shown.plan
    if done:
        message(f"{counted(plan.partitions, 'partition', 'is', 'are')} {_DONE[plan.kind]}.")
        if plan.kind is PlanKind.BACKFILL:
            message(f"To see how far it is: sealbook backfill show {plan.name or plan.id}")
    elif not shown.items:
        message("There is nothing to do.")
    elif dry_run:
        message(f"Nothing was done. To do it: sealbook {COMMANDS[plan.kind]} --plan {plan.id}")


def _as_dict(shown: Preview, *, carried_out: bool) -> dict[str, Any]:
    plan, estimate = shown.plan, shown.estimate
    by_pace = None if estimate is None else estimate.by_pace
    return {
        "plan_id": plan.id,
        "kind": plan.kind,
        "name": plan.name,
        "partitions": plan.partitions,
        "requests": plan.requests,
        "carried_out": carried_out,
        "left_out": {
            **{why.value: shown.left_out.get(why, 0) for why in LeftOut},
            "not_over": shown.not_over,
        },
        "seconds_by_pace": None if by_pace is None else by_pace.total_seconds(),
        "budgets": [] if estimate is None else estimate.budgets,
        "refused": [each.to_dict() for each in shown.refused],
        "items": [{"partition": str(item.key), "standing": item.standing} for item in shown.items],
    }
