"""`sealbook validate`: judge sealed runs by their contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.guards import say_held
from sealbook.cli.options import ConfirmOption, FormatOption, is_confirmed
from sealbook.cli.output import Format, show_json
from sealbook.cli.selecting import selects
from sealbook.cli.sending import send_lineage
from sealbook.errors import InvalidInput
from sealbook.model import Status

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.model.selection import Selection
    from sealbook.validate.plan import ValidatePlan, Which
    from sealbook.validate.results import Result, ValidateOutcome

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook validate
  sealbook validate google_ads/123-456-7890/campaign_daily/2026-01-01
  sealbook validate --query-name campaign_daily --since 2026-01-01 --until 2026-01-31
  sealbook validate --run-id 01J8ZQ6T5N8W3Y2V7R4K9M0XCE
  sealbook validate --rejected --query-name campaign_daily
  sealbook validate --revalidate --dry-run
"""


@app.command(epilog=_EXAMPLES)
@selects(writes=True, keys=True, runs=True)
def validate(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    revalidate: Annotated[
        bool, typer.Option("--revalidate", help="Judge what is accepted again; what fails is demoted.")
    ] = False,
    rejected: Annotated[
        bool,
        typer.Option("--rejected", help="Judge what was rejected again, after its contract was corrected."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Judge, and write nothing.")] = False,
    confirm: ConfirmOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Judge sealed runs by the contracts of their queries, and record the verdicts.

    By default every run that has not been judged, unless a newer one of its partition is accepted.
    What its source does not give any more is not demoted, or replaced by nothing, unless that is confirmed.
    A command that was stopped can be repeated.
    """
    from sealbook.cli.verdict_text import Telling
    from sealbook.validate.results import ValidateOutcome

    del ctx
    which = _which(revalidate=revalidate, rejected=rejected)
    plan = book.plan_validate(selection, which, dry_run=dry_run, irreplaceable=is_confirmed(confirm))
    say_held(plan.held)
    outcome = ValidateOutcome(superseded=plan.superseded)
    results = _judged(book, plan, outcome)
    if form is Format.JSON:
        from sealbook.views.judgements import judgement_dict

        show_json(map(judgement_dict, results))
    else:
        for _ in results:
            pass
    telling = Telling(plan.which, is_dry_run=dry_run)
    if form is Format.TABLE:
        telling.print_outcome(outcome)
    telling.say_outcome(outcome, failed=0 if len(plan) else _failed(book, selection))
    raise typer.Exit(_exit_code(outcome))


def _which(*, revalidate: bool, rejected: bool) -> Which:
    from sealbook.validate.plan import Which

    if revalidate and rejected:
        raise InvalidInput(
            "what is accepted and what was rejected are judged again by two commands",
            remedy="Give --revalidate or --rejected, not both.",
        )
    if revalidate:
        return Which.ACCEPTED
    return Which.REJECTED if rejected else Which.NEW


def _judged(book: Book, plan: ValidatePlan, outcome: ValidateOutcome) -> Iterator[Result]:
    """Yield results while they come, counted and shown as progress."""
    from sealbook.cli.progress import partitions_progress

    with (
        partitions_progress("Validating", len(plan)) as progress,
        closing(book.pipeline.validate(plan, progress.advance)) as batches,
    ):
        for batch in batches:
            outcome.add(batch)
            yield from batch
    send_lineage(book)


def _failed(book: Book, selection: Selection) -> int:
    """Count the partitions chosen whose last judgement is a rejection."""
    failed = replace(selection, runs=None, statuses=(Status.FAILED,))
    return book.ledger.status_counts(failed)[Status.FAILED]


def _exit_code(outcome: ValidateOutcome) -> ExitCode:
    if not outcome.rejected and not outcome.not_judged:
        return ExitCode.DONE
    nothing_judged = not outcome.accepted and not outcome.rejected
    if nothing_judged and all(result.is_misconfigured for result in outcome.not_judged):
        return ExitCode.WRONG_USAGE
    return ExitCode.DONE_IN_PART
