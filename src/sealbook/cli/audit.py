"""`sealbook audit`: who did what by hand, when, why, and to which partitions (R-CTL-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.selecting import selects
from sealbook.views.choosing import TIME_FORM

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.cli.table import Column
    from sealbook.model.selection import Selection

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook audit
  sealbook audit --actor ann --action rollback --action cancel
  sealbook audit google_ads/1234567890/campaign_daily/2026-01-01
  sealbook audit --from 2026-01-01 --to 2026-02-01 --format json
"""


@app.command(epilog=_EXAMPLES)
@selects(keys=True)
def audit(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    actions: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="NAME", help="Only this action; may be given again."),
    ] = None,
    actor: Annotated[str | None, typer.Option(metavar="NAME", help="Only what this one did.")] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help=f"Only what was done from then on: {TIME_FORM}."),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help=f"Only what was done before: {TIME_FORM}.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most so many.")] = 100,
    before: Annotated[
        int | None,
        typer.Option(metavar="ID", min=1, help="Go on behind this one, the last of the page before."),
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the log of overrides, the latest first: what was done by hand or by policy, by whom, and why.

    Keys and filters choose what was done to any of those partitions, or to a scope that has them.
    """
    from sealbook.views.audit import AuditFilter, audit_entries, entry_dict

    del ctx
    where = AuditFilter(actions or (), actor, begin, end, before)
    shown = list(map(entry_dict, audit_entries(book.ledger, selection, where, limit)))
    if form is Format.JSON:
        show_json(shown)
    else:
        from sealbook.cli.table import print_table

        print_table(shown, _columns())
    if not shown:
        message("Nothing of the kind was done.")
    elif len(shown) == limit:
        message(f"--limit: these are the latest {limit:,}; there may be more")


def _columns() -> list[Column[dict[str, Any]]]:
    from sealbook.cli.table import Column
    from sealbook.views.audit import entry_says

    return [
        Column("when (UTC)", lambda each: each["at"]),
        Column("who", lambda each: each["actor"]),
        Column("action", lambda each: each["action"]),
        Column("what", lambda each: "; ".join(entry_says(each)), wraps=True),
        Column("partitions", lambda each: f"{len(each['partitions']):,}", number=True, spare=1),
        Column("why", lambda each: each["reason"], wraps=True),
    ]
