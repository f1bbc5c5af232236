"""`sealbook validate`: judge sealed runs by their contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.invocation import check_names, open_book
from sealbook.cli.options import (
    CustomerIdOption,
    FormatOption,
    KeysArgument,
    QueryNameOption,
    RunIdOption,
    SinceOption,
    SourceOption,
    UntilOption,
)
from sealbook.cli.output import Format, show_json
from sealbook.model.keys import check_customer_id

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.validate import Plan, Result, Selection, Tally, Validator

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook validate
  sealbook validate google_ads/123-456-7890/campaign_daily/2026-01-01
  sealbook validate --query-name campaign_daily --since 2026-01-01 --until 2026-01-31
  sealbook validate --run-id 01J8ZQ6T5N8W3Y2V7R4K9M0XCE
  sealbook validate --revalidate --source google_ads
  sealbook validate --rehearse --query-name campaign_daily
"""


@app.command(epilog=_EXAMPLES)
def validate(
    ctx: typer.Context,
    keys: KeysArgument = None,
    source: SourceOption = None,
    customer_id: CustomerIdOption = None,
    query_name: QueryNameOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    run_id: RunIdOption = None,
    revalidate: Annotated[
        bool, typer.Option("--revalidate", help="Judge what is accepted again; what fails is demoted.")
    ] = False,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Show what --revalidate would demote; write nothing.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Judge sealed runs by the contracts of their queries, and record the verdicts.

    By default every run that is newer than what was last judged of its partition.
    A run that was judged is not judged again, so a command that was stopped can be repeated.
    """
    from sealbook.validate import Selection, Tally

    filters = (source, customer_id, query_name, since, until)
    if keys and any(value is not None for value in filters):
        raise typer.BadParameter("give keys or filters, not both")
    if revalidate and rehearse:
        raise typer.BadParameter("give --revalidate or --rehearse, not both")
    if source and customer_id:
        check_customer_id(source, customer_id)
    if since and until and since > until:
        raise typer.BadParameter(f"since {since} is after until {until}")
    selection = Selection(tuple(keys or ()), source, customer_id, query_name, since, until, run_id)
    tally = Tally()
    with open_book(ctx) as book:
        validator = book.validator
        plan = _plan(validator, selection, revalidate=revalidate, rehearse=rehearse)
        if plan.candidates:
            _check_rules(book, plan)
        elif not plan.gone:
            check_names(book, source, None if customer_id is None else [customer_id], query_name)
        told = nullcontext() if rehearse else _told(book, plan)
        results = _counted(validator, plan, tally, told)
        if form is Format.JSON:
            from sealbook.cli.verdict_text import as_object

            show_json(map(as_object, results))
        else:
            for _ in results:
                pass
    from sealbook.cli.verdict_text import print_tally, say_tally

    if form is Format.TABLE:
        print_tally(tally, is_rehearsal=rehearse)
    say_tally(tally, is_again=revalidate or rehearse, is_rehearsal=rehearse)
    raise typer.Exit(_exit_code(tally))


def _plan(validator: Validator, selection: Selection, *, revalidate: bool, rehearse: bool) -> Plan:
    if revalidate or rehearse:
        return validator.plan_again(selection, is_rehearsal=rehearse)
    return validator.plan(selection)


def _check_rules(book: Book, plan: Plan) -> None:
    """Refuse a rule that is wrong before any job runs, and say where it stands."""
    from sealbook.cli.rule_places import rule_errors

    for name in sorted({candidate.key.source for candidate in plan.candidates}):
        if name in book.settings.sources:
            for error in rule_errors(book.spark, book.settings.sources[name]):
                raise error


def _told(book: Book, plan: Plan) -> AbstractContextManager[object]:
    """Have the log say that the runs concerned are validated."""
    from sealbook.chronicle import steps_of
    from sealbook.model.pipeline_events import PipelineStep

    runs = {candidate.run_id for candidate in plan.candidates}
    return steps_of(book.ledger.run_store, PipelineStep.VALIDATE, runs)


def _counted(
    validator: Validator, plan: Plan, tally: Tally, told: AbstractContextManager[object]
) -> Iterator[Result]:
    """Yield results while they come, counted and shown as progress."""
    from sealbook.cli.progress import partitions_progress
    from sealbook.validate import Judged

    total = len(plan.candidates) + len(plan.gone)
    with told, partitions_progress("Validating", total) as progress:
        for result in validator.judge(plan):
            tally.add(result)
            rows, size = (result.rows, result.payload_bytes) if isinstance(result, Judged) else (0, 0)
            progress.advance(1, rows=rows, size=size)
            yield result


def _exit_code(tally: Tally) -> ExitCode:
    if not tally.rejected and not tally.not_judged:
        return ExitCode.DONE
    nothing_judged = not tally.accepted and not tally.rejected
    if nothing_judged and all(result.is_misconfigured for result in tally.not_judged):
        return ExitCode.WRONG_USAGE
    return ExitCode.DONE_IN_PART
