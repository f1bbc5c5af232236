"""`sealbook changes`: what changed of what is published, since a token or for a consumer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_object
from sealbook.cli.selecting import selects
from sealbook.errors import InvalidInput
from sealbook.model.publication import Change
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.model.published_changes import Changes, PublishedChange
    from sealbook.model.selection import Selection

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook changes campaign_daily --after 41
  sealbook changes campaign_daily --after month_end --format json
  sealbook changes campaign_daily --as reports
  sealbook changes campaign_daily --as reports --advance 42
  sealbook changes campaign_daily --follow
"""
_STYLES = {
    Change.WITHDRAWN: "red",
    Change.REPLACED: "yellow",
    Change.RESTORED: "green",
    Change.PUBLISHED: "green",
}
_LOOK_AGAIN_SECONDS = 1.0


@app.command(epilog=_EXAMPLES)
@selects(query=True, writes=True)
def changes(
    ctx: typer.Context,
    book: Book,
    selection: Selection,
    after: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Since this token, or this cut. Default: ever.")
    ] = None,
    consumer: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Since what this consumer has advanced to.")
    ] = None,
    advance: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="With --as: say that it has come so far, and no more.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, until Ctrl-C.")] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="About so many; whole versions are told.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Tell each change of the run that consumers get of a partition, in order, and the token to go on from.

    With --format json it is one object; with --follow, one a line for each time that something changed.
    """
    ctx.obj.has_begun = False  # there is nothing to go on with: the token says from where
    if advance is not None:
        _advance(book, selection, consumer, advance)
        return
    if after is not None and consumer is not None:
        raise InvalidInput("a token and a consumer are given", field="after", remedy="Give one of them.")
    found = book.changes_of(selection, after, consumer=consumer, limit=limit)
    _show(found, form)
    while follow:
        found = book.changes_of(selection, found.token, limit=limit)
        if found.items:
            _show(found, form)
        elif not found.more:
            time.sleep(_LOOK_AGAIN_SECONDS)


def _advance(book: Book, selection: Selection, consumer: str | None, token: str) -> None:
    if consumer is None:
        raise InvalidInput("no consumer is named", field="advance", remedy="Give --as NAME.")
    kept = book.advance(consumer, selection, token)
    message(f"{kept.name} has followed {kept.source}/{kept.query_name} up to {kept.token}.")


def _show(found: Changes, form: Format) -> None:
    if form is Format.JSON:
        show_object(found.to_dict())
        return
    from sealbook.cli.table import Column, print_table

    columns: list[Column[PublishedChange]] = [
        Column("at (UTC)", lambda each: each.at or "by a verdict", spare=2),
        Column("partition", lambda each: each.key),
        Column("change", lambda each: each.kind, style=lambda each: _STYLES[each.kind]),
        Column("from run", lambda each: each.from_run_id, spare=1),
        Column("to run", lambda each: each.to_run_id),
    ]
    if found.items:
        print_table(found.items, columns)
    more = ", and there are more" if found.more else ""
    message(f"{counted(len(found.items), 'change')}{more}. To go on: --after {found.token}")
