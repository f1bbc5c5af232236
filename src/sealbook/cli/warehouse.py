"""`sealbook warehouse`: what is published, what a load would change, and whether it is all there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING

import typer

from sealbook.cli import cut, upkeep
from sealbook.cli.options import FormatOption, FullOption, LimitOption
from sealbook.cli.output import Format, message, show, show_json
from sealbook.cli.selecting import selects
from sealbook.cli.table import Column, print_table

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.model.artifacts import Action, LoadRecord, PlanItem
    from sealbook.model.publication import Pointer
    from sealbook.model.selection import Selection

app = typer.Typer(help="What is published, and whether it is all there.", no_args_is_help=True)

_PLAN_EXAMPLES = """
[bold]Examples[/bold]
  sealbook warehouse plan
  sealbook warehouse plan --query campaign_daily --format json
  sealbook warehouse plan --full
"""
_POINTERS_EXAMPLES = """
[bold]Examples[/bold]
  sealbook warehouse pointers --query campaign_daily
  sealbook warehouse pointers google_ads/1234567890/campaign_daily/2026-01-01
"""
_RECORDS_EXAMPLES = """
[bold]Examples[/bold]
  sealbook warehouse records --query campaign_daily --since 2026-01-01
"""


@app.command(epilog=_PLAN_EXAMPLES)
@selects(keys=True)
def plan(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    full: FullOption = False,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Count and list what a load would do: load, replace, hide. Nothing is changed."""
    del ctx
    message(plan_text(book.ledger.pointers.plan_counts(selection, full=full)))
    show_plan(islice(book.ledger.pointers.plan(selection, full=full), limit), form)


def plan_text(counts: Mapping[Action, int]) -> str:
    """Say how much a load has to do."""
    return f"Plan: {', '.join(f'{count:,} to {action}' for action, count in counts.items())}"


def show_plan(items: Iterable[PlanItem], form: Format) -> None:
    """Print what a load has to do."""
    if form is Format.JSON:
        show_json(items)
        return
    columns: list[Column[PlanItem]] = [
        Column("partition", lambda item: item.key),
        Column("action", lambda item: item.action),
        Column("run", lambda item: item.run_id),
        Column("published run", lambda item: item.published_run_id, spare=1),
        Column("schema", lambda item: item.schema_version, spare=3),
        Column("records", lambda item: item.record_count, spare=2, number=True),
    ]
    print_table(items, columns)


@app.command(epilog=_POINTERS_EXAMPLES)
@selects(keys=True)
def pointers(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the latest pointer of each partition; of partitions that are named, all that they have had."""
    del ctx
    reads = book.ledger.pointers
    found: Iterable[Pointer] = (
        chain.from_iterable(map(reads.history, selection.keys))
        if selection.keys
        else reads.pointers(selection)
    )
    shown = islice(found, limit)
    if form is Format.JSON:
        show_json({**each._asdict(), "status": each.status} for each in shown)
    else:
        print_table(shown, _pointer_columns())


def _pointer_columns() -> list[Column[Pointer]]:
    from sealbook.model.publication import PointerStatus

    return [
        Column("partition", lambda each: each.key),
        Column(
            "status",
            lambda each: each.status,
            style=lambda each: "green" if each.status is PointerStatus.AVAILABLE else "red",
        ),
        Column("run", lambda each: each.run_id),
        Column("schema", lambda each: each.schema_version, spare=3),
        Column("from version", lambda each: each.valid_from, spare=4, number=True),
        Column("to version", lambda each: each.valid_to, spare=5, number=True),
        Column("published (UTC)", lambda each: each.published_at, spare=1),
        Column("closed (UTC)", lambda each: each.closed_at, spare=2),
    ]


@app.command(epilog=_RECORDS_EXAMPLES)
@selects(keys=True)
def records(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    limit: LimitOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the load records: when each run was first loaded, and into which artifact."""
    del ctx
    columns: list[Column[LoadRecord]] = [
        Column("partition", lambda each: each.key),
        Column("run", lambda each: each.run_id),
        Column("schema", lambda each: each.schema_version, spare=2),
        Column("loaded (UTC)", lambda each: each.loaded_at),
        Column("records", lambda each: each.record_count, spare=1, number=True),
        Column("bytes", lambda each: each.bytes, spare=3, number=True),
        Column("digest", lambda each: each.digest[:12], spare=4),
    ]
    show(islice(book.ledger.pointers.load_records(selection), limit), columns, form)


app.command(epilog=upkeep.GC_EXAMPLES)(upkeep.gc)
app.command(epilog=upkeep.VERIFY_EXAMPLES)(upkeep.verify)
app.add_typer(cut.app, name="cut")
