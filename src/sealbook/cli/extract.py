"""`sealbook extract`: fetch partitions from their sources and seal them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.guards import ForceOption, YesOption, approve
from sealbook.cli.options import FormatOption, ResumedRunOption
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.selecting import selects
from sealbook.cli.sending import send_lineage
from sealbook.extract.results import Ending
from sealbook.model.words import counted
from sealbook.stopping import uninterrupted

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.cli.table import Column
    from sealbook.extract.plan import ExtractPlan
    from sealbook.extract.results import Extracted
    from sealbook.model import RunId
    from sealbook.model.selection import Selection
    from sealbook.views.sums import QuerySum

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook extract --since 2026-01-01 --until 2026-01-31
  sealbook extract --day yesterday --customer 123-456-7890 --query campaign_daily
  sealbook extract --since 2026-01-01 --until 2026-01-31 --run-id 01J8ZQ6T5N8W3Y2V7R4K9M0XCE
"""


@app.command(epilog=_EXAMPLES)
@selects(writes=True, keys=True, lookback=True)
def extract(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    run_id: ResumedRunOption = None,
    yes: YesOption = False,
    force: ForceOption = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Fetch every partition of a span of days and seal it as one run.

    To go on with a run that was stopped, name it by --run-id: what it has sealed is skipped.
    One partition's failure leaves the others alone.
    """
    from sealbook.cli.reasons import say_reasons
    from sealbook.views.sums import extract_reasons

    plan = book.plan_extract(selection)
    approve(plan, book.settings.sources, yes=yes, force=force)
    with uninterrupted():
        run = ctx.obj.run_id = run_id or book.pipeline.open_run()
    message(f"Run {run}: {counted(len(plan), 'partition')}")
    results = _extract(book, plan, run)
    if form is Format.JSON:
        show_json(result.row() for result in results)
    else:
        _show_summary(results)
    say_reasons(extract_reasons(results))
    failed = sum(result.ending is Ending.FAILED for result in results)
    if failed == len(results):
        message("Nothing was sealed. Try again as a new run.")
        raise typer.Exit(ExitCode.FAILED)
    if failed:
        message(f"Some failed. To try them again: {ctx.obj.command_to_go_on()}")
        raise typer.Exit(ExitCode.DONE_IN_PART)


def _extract(book: Book, plan: ExtractPlan, run_id: RunId) -> list[Extracted]:
    from sealbook.cli.progress import partitions_progress

    results: list[Extracted] = []
    with (
        partitions_progress("Extracting", len(plan)) as progress,
        closing(book.pipeline.extract(plan, run_id, progress.advance)) as batches,
    ):
        for batch in batches:
            results += batch
    send_lineage(book)
    return sorted(results, key=lambda result: result.key)


def _show_summary(results: Sequence[Extracted]) -> None:
    from sealbook.cli.table import Column, print_table
    from sealbook.views.sums import extract_sums

    columns: list[Column[QuerySum[Ending]]] = [
        Column("query", lambda each: each.query),
        Column("sealed", lambda each: each.endings[Ending.SEALED], style=lambda _: "green", number=True),
        Column("skipped", lambda each: each.endings[Ending.SKIPPED], number=True),
        Column("failed", lambda each: each.endings[Ending.FAILED], style=lambda _: "red", number=True),
        Column("rows", lambda each: f"{each.rows:,}", number=True),
        Column("MB", lambda each: f"{each.bytes / 1e6:,.1f}", number=True),
    ]
    print_table(extract_sums(results), columns)
