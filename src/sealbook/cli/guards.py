"""What a command asks before it fetches very much, and the days that it does not fetch by itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.output import message
from sealbook.clock import utc_now
from sealbook.errors import InvalidInput
from sealbook.model.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sealbook.config import SourceSettings
    from sealbook.extract.plan import ExtractPlan
    from sealbook.model.claims import Lease

MOST_DAYS = 366
MOST_PARTITIONS = 100_000

YesOption = Annotated[
    bool,
    typer.Option(
        "--yes",
        "-y",
        help=f"Do not ask before more than {MOST_DAYS} days or {MOST_PARTITIONS:,} partitions are fetched.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Fetch days that have not begun, too.")]


def approve(plan: ExtractPlan, sources: Mapping[str, SourceSettings], *, yes: bool, force: bool) -> None:
    """Let a plan pass, ask the person at the terminal about it, or refuse it."""
    first, last = plan.days
    ahead = None if force else plan.not_begun(sources, utc_now())
    if ahead is not None:
        days = (ahead.last - max(first, ahead.today)).days + (first > ahead.today)
        raise InvalidInput(
            f"{counted(days, 'day', 'has', 'have')} not begun of {first} … {ahead.last}:"
            f" today is {ahead.today} in {ahead.zone}",
            field="until",
            value=ahead.last,
            remedy=f"End with --until {ahead.today} or earlier, or fetch what is not due by --force.",
        )
    if plan.left_out:
        message(
            f"Left out: {counted(plan.left_out, 'partition')} of days that the accounts do not have"
            " (first_day, last_day)"
        )
    if plan.past_horizon:
        message(f"Left out: {counted(plan.past_horizon, 'partition')} past the horizon of their source")
    say_held(plan.held)
    days = (last - first).days + 1
    if yes or (days <= MOST_DAYS and len(plan) <= MOST_PARTITIONS):
        return
    much = f"{counted(len(plan), 'partition')} of {counted(days, 'day')}, {first} … {last}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(
            f"that is much to fetch: {much}", remedy="Choose less, or say that it is meant: --yes."
        )
    if not typer.confirm(f"That is much to fetch: {much}. Go on?", err=True):
        message("Nothing was started.")
        raise typer.Exit(ExitCode.FAILED)


def say_held(leases: Sequence[Lease]) -> None:
    """Say which partitions are left out because others are working on them, and the way out (R-CTL-4)."""
    if not leases:
        return
    from sealbook.cli.reasons import few

    holders = ", ".join(sorted({lease.holder for lease in leases}))
    message(
        f"Left out: {counted(len(leases), 'partition')} being worked on by {holders}"
        f" ({few([lease.key for lease in leases])}). See `sealbook control leases`; what loops are to leave"
        " alone, pause first: `sealbook state pause`."
    )
