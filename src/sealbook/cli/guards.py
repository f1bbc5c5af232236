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
    from sealbook.extract.plan import ExtractPlan

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


def approve(plan: ExtractPlan, *, yes: bool, force: bool) -> None:
    """Let a plan pass, ask the person at the terminal about it, or refuse it."""
    first, last = plan.days
    today = utc_now().date()
    if last > today and not force:
        ahead = (last - max(first, today)).days + (first > today)
        raise InvalidInput(
            f"{counted(ahead, 'day', 'has', 'have')} not begun of {first} … {last}: today is {today} in UTC",
            field="until",
            value=last,
            remedy=f"End with --until {today} or earlier, or fetch what is not due by --force.",
        )
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
