"""`sealbook load`: publish what is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.guards import say_held
from sealbook.cli.options import FormatOption, FullOption
from sealbook.cli.output import Format, flat, message, show_json
from sealbook.cli.selecting import selects
from sealbook.cli.sending import send_lineage
from sealbook.cli.warehouse import plan_text, show_plan
from sealbook.load.results import PUBLISHING, LoadEnding

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.cli.table import Column
    from sealbook.load.loader import LoadPlan
    from sealbook.load.results import Loaded
    from sealbook.model.selection import Selection
    from sealbook.views.sums import QuerySum

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook load
  sealbook load --dry-run
  sealbook load --query campaign_daily --since 2026-01-01
  sealbook load --rebuild
  sealbook load --full
"""


@app.command(epilog=_EXAMPLES)
@selects(writes=True, keys=True)
def load(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Also stage published artifacts that are missing or damaged.")
    ] = False,
    full: FullOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Publish every accepted run, and hide what is not accepted any more.

    Only what differs from what is published is touched; with nothing to do, Spark is not started.
    A load that was stopped or killed is finished by the next one.
    """
    from sealbook.cli.reasons import say_reasons
    from sealbook.views.sums import load_reasons

    del ctx
    plan = book.plan_load(selection, rebuild=rebuild, full=full)
    say_held(plan.held)
    message(plan_text(plan.counts) + (f", {len(plan.rebuild):,} to check" if rebuild else ""))
    if dry_run:
        show_plan(plan.items, form)
        return
    results = _load(book, plan)
    if form is Format.JSON:
        show_json(map(flat, results))
    else:
        _show_summary(results)
    say_reasons(load_reasons(results))
    failed = sum(result.ending is LoadEnding.FAILED for result in results)
    if failed:
        raise typer.Exit(ExitCode.FAILED if failed == len(results) else ExitCode.DONE_IN_PART)


def _load(book: Book, plan: LoadPlan) -> list[Loaded]:
    from sealbook.cli.progress import partitions_progress

    results: list[Loaded] = []
    with (
        partitions_progress("Loading", len(plan)) as progress,
        closing(book.pipeline.load(plan, progress.advance)) as batches,
    ):
        for batch in batches:
            results += batch
    send_lineage(book)
    return sorted(results, key=lambda result: result.key)


_STYLES = {**dict.fromkeys(PUBLISHING, "green"), LoadEnding.FAILED: "red"}
_ALWAYS = (LoadEnding.LOADED, LoadEnding.REPLACED, LoadEnding.HIDDEN, LoadEnding.SKIPPED, LoadEnding.FAILED)


def _show_summary(results: Sequence[Loaded]) -> None:
    """Print what was done, by query."""
    from sealbook.cli.table import Column, print_table
    from sealbook.views.sums import load_sums

    sums = load_sums(results)
    if not sums:
        message("Nothing to do: no authority has changed since the last load.")
        return
    columns: list[Column[QuerySum[LoadEnding]]] = [Column("query", lambda each: each.query)]
    columns += [
        _ending_column(ending)
        for ending in LoadEnding
        if ending in _ALWAYS or any(each.endings[ending] for each in sums)
    ]
    columns += [
        Column("rows", lambda each: f"{each.rows:,}", number=True),
        Column("MB", lambda each: f"{each.bytes / 1e6:,.1f}", number=True),
    ]
    print_table(sums, columns)


def _ending_column(ending: LoadEnding) -> Column[QuerySum[LoadEnding]]:
    from sealbook.cli.table import Column

    return Column(
        ending.value,
        lambda each: each.endings[ending],
        style=lambda _: _STYLES.get(ending, ""),
        number=True,
    )
