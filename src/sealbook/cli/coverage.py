"""`sealbook coverage`: what a read gets of every partition, and why not more."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import (
    CustomersOption,
    CutOption,
    FormatOption,
    QueryNameArgument,
    SinceOption,
    SourceOption,
    StrictOption,
    UntilOption,
)
from sealbook.cli.output import Format, message, show_json
from sealbook.model.publication import CoverageKind

if TYPE_CHECKING:
    from sealbook.cli.table import Column
    from sealbook.model.publication import Coverage

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook coverage campaign_daily
  sealbook coverage campaign_daily --since 2026-01-01 --until 2026-01-31 --kind failed --kind missing
  sealbook coverage campaign_daily --cut month_end --format json
"""
_STYLES = {
    CoverageKind.PUBLISHED: "green",
    CoverageKind.BEHIND: "yellow",
    CoverageKind.HIDDEN: "red",
    CoverageKind.FAILED: "red",
}


@app.command(epilog=_EXAMPLES)
def coverage(
    ctx: typer.Context,
    query_name: QueryNameArgument,
    source: SourceOption = None,
    customers: CustomersOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    kinds: Annotated[
        list[CoverageKind] | None, typer.Option("--kind", help="Only this kind; may be given again.")
    ] = None,
    strict: StrictOption = False,
    cut: CutOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say of every partition of a query what a read gets of it, of which run, and why not more.

    Customers are those of the configuration and others that the ledger knows. Days run from the first
    to the last that the ledger knows.
    """
    with open_book(ctx) as book:
        found = book.coverage(
            query_name,
            source=source,
            customers=customers,
            since=since,
            until=until,
            strict=strict,
            cut=cut,
        )
    shown = [each for each in found if not kinds or each.kind in kinds]
    if form is Format.JSON:
        show_json(shown)
    elif shown:
        from sealbook.cli.table import print_table

        print_table(shown, _columns())
    counts = Counter(each.kind for each in found)
    said = ", ".join(f"{counts[kind]:,} {kind}" for kind in CoverageKind if counts[kind])
    message(f"{len(found):,} partitions" + (f": {said}" if said else ""))


def _columns() -> list[Column[Coverage]]:
    from sealbook.cli.table import Column

    return [
        Column("partition", lambda each: each.key),
        Column("kind", lambda each: each.kind, style=lambda each: _STYLES.get(each.kind, "")),
        Column("run", lambda each: each.run_id, spare=1),
        Column("why", lambda each: each.why, wraps=True),
    ]
