"""`sealbook consumers`: who follows what is published, and how far each has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show

if TYPE_CHECKING:
    from sealbook.cli.table import Column
    from sealbook.views.consumers import ConsumerLag

app = typer.Typer(
    cls=DefaultGroup,
    help="Who follows what is published, and how far each has come."
    "\n\n`sealbook consumers` is short for `list`.",
)

_LIST_EXAMPLES = """
[bold]Examples[/bold]
  sealbook consumers
  sealbook consumers --format json
"""


@app.command("list", epilog=_LIST_EXAMPLES)
def list_(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """List the consumers that keep a token in the ledger, with what each has not been told yet."""
    from sealbook.views.consumers import consumer_lags

    with open_book(ctx) as book:
        found = consumer_lags(book.ledger.reader.pointers)
    show(found, _columns(form), form)
    if not found:
        message("There is no consumer yet: `sealbook changes QUERY --as NAME --advance TOKEN` makes one.")


@app.command()
def drop(
    ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME", help="The consumer.")]
) -> None:
    """Forget a consumer, and how far it has come with any query."""
    with open_book(ctx) as book:
        book.ledger.pointers.drop_consumer(name)
    message(f"Dropped consumer {name}.")


def _columns(form: Format) -> list[Column[ConsumerLag]]:
    if form is Format.JSON:
        return []
    from sealbook.cli.table import Column

    return [
        Column("consumer", lambda each: each.name),
        Column("query", lambda each: f"{each.source}/{each.query_name}"),
        Column("version", lambda each: each.version, number=True, spare=1),
        Column("advanced (UTC)", lambda each: each.advanced_at, spare=2),
        Column("not told", lambda each: f"{each.changes:,}{'+' if each.more else ''}", number=True),
        Column("withdrawn", lambda each: f"{each.withdrawn:,}", number=True),
        Column("since (UTC)", lambda each: each.since),
    ]
