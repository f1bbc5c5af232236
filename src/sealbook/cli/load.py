"""`sealbook load`: publish what is accepted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.invocation import check_names, open_book
from sealbook.cli.options import (
    CustomersOption,
    FormatOption,
    QueryNameOption,
    SinceOption,
    SourceOption,
    UntilOption,
)
from sealbook.cli.output import Format, flat, message, show_json
from sealbook.cli.warehouse import plan_text, show_plan
from sealbook.load.results import Loaded, LoadEnding

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.cli.table import Column
    from sealbook.load.loader import LoadPlan

app = typer.Typer()

_SHOWN = 10

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook load
  sealbook load --dry-run
  sealbook load --query campaign_daily --since 2026-01-01
  sealbook load --again
"""


@app.command(epilog=_EXAMPLES)
def load(
    ctx: typer.Context,
    source: SourceOption = None,
    customers: CustomersOption = None,
    query_name: QueryNameOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also stage published artifacts that are missing or damaged.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Publish every accepted run, and hide what is not accepted any more.

    Only what differs from what is published is touched; with nothing to do, Spark is not started.
    A load that was stopped or killed is finished by the next one.
    """
    with open_book(ctx) as book:
        loader = book.loader
        plan = loader.plan(
            again=again,
            source=source,
            query_name=query_name,
            customers=customers,
            since=since,
            until=until,
        )
        if not plan:
            check_names(book, source, customers, query_name)
        message(plan_text(plan.counts) + (f", {len(plan.again):,} to check" if again else ""))
        if dry_run:
            show_plan(plan.items, form)
            return
        results = run_load(book, plan)
    if form is Format.JSON:
        show_json(map(flat, results))
    else:
        show_summary(results)
    failed = sum(result.ending is LoadEnding.FAILED for result in results)
    if failed:
        raise typer.Exit(ExitCode.FAILED if failed == len(results) else ExitCode.DONE_IN_PART)


def run_load(book: Book, plan: LoadPlan) -> list[Loaded]:
    """Carry out a plan under a progress bar, and have the log say so of the runs concerned."""
    from sealbook.chronicle import steps_of
    from sealbook.cli.progress import partitions_progress
    from sealbook.model.pipeline_events import PipelineStep

    results: list[Loaded] = []
    runs = {item.run_id for item in plan.items if item.run_id is not None}
    with (
        steps_of(book.ledger.run_store, PipelineStep.LOAD, runs) as steps,
        partitions_progress("Loading", len(plan)) as progress,
        closing(book.loader.load(plan, progress.advance)) as batches,
    ):
        steps.complete_runs(runs)
        for batch in batches:
            results += batch
    return sorted(results, key=lambda result: result.key)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The results of one query, added up."""

    query: str
    results: tuple[Loaded, ...]

    def count(self, ending: LoadEnding) -> int:
        return sum(result.ending is ending for result in self.results)


_STYLES = {LoadEnding.LOADED: "green", LoadEnding.REPLACED: "green", LoadEnding.FAILED: "red"}


def show_summary(results: Sequence[Loaded]) -> None:
    """Print what was done by query, and the first partitions that were left alone."""
    from sealbook.cli.table import Column, print_table

    by_query: dict[str, list[Loaded]] = defaultdict(list)
    for result in results:
        by_query[f"{result.key.source}/{result.key.query_name}"].append(result)
    sums = [_Sum(query, tuple(those)) for query, those in by_query.items()]
    columns: list[Column[_Sum]] = [Column("query", lambda each: each.query)]
    columns += [_ending_column(ending) for ending in LoadEnding if ending in _ALWAYS or _any(results, ending)]
    columns += [
        Column("rows", lambda each: f"{sum(one.record_count for one in each.results):,}", number=True),
        Column("MB", lambda each: f"{sum(one.bytes for one in each.results) / 1e6:,.1f}", number=True),
    ]
    if sums:
        print_table(sums, columns)
    else:
        message("Nothing to do: what is published is what is accepted.")
    left_alone = [result for result in results if result.reason is not None]
    for result in left_alone[:_SHOWN]:
        message(f"{result.key} {result.ending}: {result.reason}")
    if len(left_alone) > _SHOWN:
        message(f"… and {len(left_alone) - _SHOWN} more; --format json lists all.")


_ALWAYS = (LoadEnding.LOADED, LoadEnding.REPLACED, LoadEnding.HIDDEN, LoadEnding.SKIPPED, LoadEnding.FAILED)


def _any(results: Sequence[Loaded], ending: LoadEnding) -> bool:
    return any(result.ending is ending for result in results)


def _ending_column(ending: LoadEnding) -> Column[_Sum]:
    from sealbook.cli.table import Column

    return Column(
        ending.value,
        lambda each: each.count(ending),
        style=lambda _: _STYLES.get(ending, ""),
        number=True,
    )
