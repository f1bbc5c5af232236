"""`sealbook coverage`: what a read gets of every partition, and why not more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.options import CutOption, FormatOption, StrictOption
from sealbook.cli.output import Format, message, show
from sealbook.cli.selecting import selects
from sealbook.model.publication import CoverageKind
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.cli.table import Column
    from sealbook.model.publication import Coverage
    from sealbook.model.selection import Selection

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook coverage campaign_daily
  sealbook coverage --since 2026-01-01 --until 2026-01-31 --kind failed --kind missing
  sealbook coverage campaign_daily --cut month_end --format json
"""
_STYLES = {
    CoverageKind.PUBLISHED: "green",
    CoverageKind.BEHIND: "yellow",
    CoverageKind.WITHDRAWN: "yellow",
    CoverageKind.HIDDEN: "red",
    CoverageKind.FAILED: "red",
}


@app.command(epilog=_EXAMPLES)
@selects(query=True, catches_up=True)
def coverage(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    kinds: Annotated[
        list[CoverageKind] | None, typer.Option("--kind", help="Only this kind; may be given again.")
    ] = None,
    strict: StrictOption = False,
    cut: CutOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Say of every partition of a query, or of all, what a read gets of it, of which run, and why not more.

    It is told of all partitions that are due, and of others that the ledger knows; with --until or --day,
    of those that are not due yet, too.
    """
    from sealbook.views.coverage import CoverageListing

    del ctx
    found = CoverageListing(
        book.settings,
        book.ledger,
        book.universe(),
        selection,
        kinds=kinds or (),
        strict=strict,
        cut=cut,
    )
    show(found, _columns(form), form)
    said = ", ".join(f"{found.counts[kind]:,} {kind}" for kind in CoverageKind if found.counts[kind])
    message(counted(found.counts.total(), "partition") + (f": {said}" if said else ""))


def _columns(form: Format) -> list[Column[Coverage]]:
    if form is Format.JSON:
        return []
    from sealbook.cli.table import Column

    return [
        Column("partition", lambda each: each.key),
        Column("kind", lambda each: each.kind, style=lambda each: _STYLES.get(each.kind, "")),
        Column("run", lambda each: each.run_id, spare=1),
        Column("why", lambda each: each.why, wraps=True),
    ]
