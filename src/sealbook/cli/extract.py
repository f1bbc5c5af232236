"""`sealbook extract`: fetch partitions from their sources and seal them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.invocation import open_book
from sealbook.cli.options import (
    CustomersOption,
    FirstDayOption,
    FormatOption,
    LastDayOption,
    QueriesOption,
    RunIdOption,
    SourceOption,
)
from sealbook.cli.output import Format, message, show_json
from sealbook.extract.results import Ending, Extracted

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.model import PartitionKey, RunId

app = typer.Typer()

_FAILURES_SHOWN = 10

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook extract --since 2026-01-01 --until 2026-01-31
  sealbook extract --since 2026-01-01 --until 2026-01-01 --customer 123-456-7890 --query campaign_daily
  sealbook extract --since 2026-01-01 --until 2026-01-31 --run-id 01J8ZQ6T5N8W3Y2V7R4K9M0XCE
"""


@app.command(epilog=_EXAMPLES)
def extract(
    ctx: typer.Context,
    since: FirstDayOption,
    until: LastDayOption,
    source: SourceOption = None,
    customers: CustomersOption = None,
    queries: QueriesOption = None,
    run_id: RunIdOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Fetch every partition of a span of days and seal it as one run.

    To go on with a run that was stopped, name it by --run-id: what it has sealed is skipped.
    One partition's failure leaves the others alone.
    """
    from sealbook.clock import new_run_id
    from sealbook.extract.planning import plan_keys

    with open_book(ctx) as book:
        plan = plan_keys(
            book.settings.sources, since, until, source=source, customers=customers, queries=queries
        )
        run = run_id or new_run_id()
        message(f"Run {run}: {sum(map(len, plan.values())):,} partitions")
        results = _extract(book, plan, run)
    if form is Format.JSON:
        show_json(result.row() for result in results)
    else:
        _show_summary(results)
    failed = sum(result.ending is Ending.FAILED for result in results)
    if failed == len(results):
        message("Nothing was sealed, so this run has ended. Try again as a new one.")
        raise typer.Exit(ExitCode.FAILED)
    if failed:
        message(f"Some failed. To try them again: sealbook extract … --run-id {run}")
        raise typer.Exit(ExitCode.DONE_IN_PART)


def _extract(book: Book, plan: dict[str, list[PartitionKey]], run_id: RunId) -> list[Extracted]:
    from sealbook.cli.progress import partitions_progress

    results: list[Extracted] = []
    with (
        partitions_progress("Extracting", sum(map(len, plan.values()))) as progress,
        closing(book.extract(plan, run_id)) as batches,
    ):
        for batch in batches:
            results += batch
            progress.advance(
                len(batch),
                rows=sum(result.record_count for result in batch),
                size=sum(result.payload_bytes for result in batch),
            )
    return sorted(results, key=lambda result: result.key)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The results of one query, added up."""

    query: str
    results: tuple[Extracted, ...]

    def count(self, ending: Ending) -> int:
        return sum(result.ending is ending for result in self.results)


def _show_summary(results: Sequence[Extracted]) -> None:
    from sealbook.cli.table import Column, print_table

    by_query: dict[str, list[Extracted]] = defaultdict(list)
    for result in results:
        by_query[f"{result.key.source}/{result.key.query_name}"].append(result)
    columns: list[Column[_Sum]] = [
        Column("query", lambda each: each.query),
        Column("sealed", lambda each: each.count(Ending.SEALED), style=lambda _: "green", number=True),
        Column("skipped", lambda each: each.count(Ending.SKIPPED), number=True),
        Column("failed", lambda each: each.count(Ending.FAILED), style=lambda _: "red", number=True),
        Column("rows", lambda each: f"{sum(one.record_count for one in each.results):,}", number=True),
        Column(
            "MB", lambda each: f"{sum(one.payload_bytes for one in each.results) / 1e6:,.1f}", number=True
        ),
    ]
    print_table([_Sum(query, tuple(those)) for query, those in by_query.items()], columns)
    failures = [result for result in results if result.ending is Ending.FAILED]
    for failure in failures[:_FAILURES_SHOWN]:
        message(f"{failure.key} failed ({failure.error_class}): {failure.error_message}")
    if len(failures) > _FAILURES_SHOWN:
        message(f"… and {len(failures) - _FAILURES_SHOWN} more; --format json lists all.")
