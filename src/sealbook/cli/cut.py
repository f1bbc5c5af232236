"""`sealbook warehouse cut`: versions of the warehouse that stay readable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message
from sealbook.cli.output import show as show_records
from sealbook.cli.table import Column
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.model.publication import Cut, Published

app = typer.Typer(help="Versions of the warehouse that stay readable.", no_args_is_help=True)

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook warehouse cut create
  sealbook warehouse cut create month_end --note "as reported in January"
"""


_SHOW_EXAMPLES = """
[bold]Examples[/bold]
  sealbook warehouse cut show month_end
  sealbook warehouse cut show month_end --format json
"""


@app.command(epilog=_EXAMPLES)
def create(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The token; default: the version, as v42.")
    ] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for.")] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Pin what can be read now, under a token: a read at the cut always gives the same rows."""
    with open_book(ctx) as book:
        made = book.ledger.pointers.create_cut(name, note=note)
    show_records([made], _cut_columns(), form)


@app.command("list")
def list_(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """List the cuts, oldest first."""
    with open_book(ctx) as book:
        show_records(book.ledger.pointers.cuts(), _cut_columns(), form)


@app.command(epilog=_SHOW_EXAMPLES)
def show(
    ctx: typer.Context,
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The cut.")],
    form: FormatOption = Format.TABLE,
) -> None:
    """List what a cut reads of every partition, and what of it was rejected or rolled back since."""
    with open_book(ctx) as book:
        found = list(book.ledger.pointers.published(cut=token))
    show_records(found, _partition_columns(), form)
    withdrawn = sum(each.withdrawn is not None for each in found)
    message(f"Cut {token} reads {counted(len(found), 'partition')}, {withdrawn:,} withdrawn since.")


@app.command()
def drop(ctx: typer.Context, token: Annotated[str, typer.Argument(metavar="TOKEN", help="The cut.")]) -> None:
    """Let a cut go: what only it has pinned can be removed by clean-up."""
    with open_book(ctx) as book:
        book.ledger.pointers.drop_cut(token)
    message(f"Dropped cut {token}.")


def _partition_columns() -> list[Column[Published]]:
    return [
        Column("partition", lambda each: each.key),
        Column("run", lambda each: each.run_id),
        Column("schema", lambda each: each.schema_version, spare=2),
        Column("records", lambda each: each.record_count, spare=1, number=True),
        Column("withdrawn", lambda each: each.withdrawn, style=lambda _: "yellow"),
    ]


def _cut_columns() -> list[Column[Cut]]:
    return [
        Column("token", lambda each: each.token),
        Column("version", lambda each: each.version, number=True),
        Column("created (UTC)", lambda each: each.created_at),
        Column("note", lambda each: each.note, wraps=True),
    ]
