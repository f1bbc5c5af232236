"""`sealbook ledger`: the database that the book is kept in."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.invocation import load_settings
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, flat, message, show, show_json
from sealbook.cli.selecting import selects
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.model.selection import Selection

app = typer.Typer(help="The database that the book is kept in.", no_args_is_help=True)

_GRANT_EXAMPLES = """
[bold]Examples[/bold]
  sealbook ledger grant
  sealbook ledger grant --prefix ads_

Then, in the database: GRANT sealbook_validator TO the_user_of_your_validators
"""


_COPY_EXAMPLES = """
[bold]Examples[/bold]
  sealbook ledger copy --to postgresql://book@db.example/book
  sealbook ledger copy --to sqlite:///backup.db
"""

_VERIFY_EXAMPLES = """
[bold]Examples[/bold]
  sealbook ledger verify
  sealbook ledger verify --customer 123-456-7890 --since 2026-01-01
"""


@app.command()
def migrate(ctx: typer.Context) -> None:
    """Bring the tables to the revision that this Sealbook needs.

    SQLite does so by itself when a book is opened.
    PostgreSQL needs this command, first and after upgrades.
    """
    from sealbook import ledger

    url = load_settings(ctx).ledger
    before, after = ledger.migrate(url)
    if before == after:
        message(f"{_shown(url)} is at revision {after} already.")
    else:
        message(f"{_shown(url)} went from {before or 'no tables'} to revision {after}.")


@app.command()
def version(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """Show the revision of the tables, and the one that this Sealbook needs."""
    from sealbook.cli.table import Column
    from sealbook.ledger.db import schema
    from sealbook.ledger.db.engine import Database

    database = Database(load_settings(ctx).ledger)
    try:
        with database.read() as connection:
            found = schema.revision(connection)
    finally:
        database.close()
    revisions = {"revision": found, "needed": schema.HEAD}
    show([revisions], [Column(name, itemgetter(name)) for name in revisions], form)


@app.command(epilog=_GRANT_EXAMPLES)
def grant(
    ctx: typer.Context,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="What the names of the roles begin with.")
    ] = "sealbook_",
    form: FormatOption = Format.TABLE,
) -> None:
    """Create the group roles on PostgreSQL, each with the rights it needs and no more.

    The roles are consumer, viewer, extractor, validator, loader and control.
    Safe to repeat; needs a user who may create roles.
    """
    from sealbook import ledger
    from sealbook.cli.table import Column

    url = load_settings(ctx).ledger
    roles = [{"role": role} for role in ledger.grant_roles(url, prefix)]
    show(roles, [Column("role", itemgetter("role"))], form)
    message(f"{_shown(url)} has {len(roles)} roles; grant them to the users of your workers.")


@app.command(epilog=_COPY_EXAMPLES)
def copy(
    ctx: typer.Context,
    to: Annotated[
        str, typer.Option(metavar="URL", help="The empty database: postgresql://… or sqlite:///file.")
    ],
    form: FormatOption = Format.TABLE,
) -> None:
    """Copy the whole ledger into an empty database, and verify it there by counts and digests.

    Stop whatever works on the book first. A copy that was stopped goes on when it is asked for again.
    The book goes on there once `ledger` in sealbook.yaml names it.
    """
    from sealbook.cli.progress import tables_progress
    from sealbook.cli.table import Column
    from sealbook.ledger.copying import CopiedTable, copy_ledger

    source = load_settings(ctx).ledger
    with tables_progress("Copying") as on_rows:
        copied = copy_ledger(source, to, on_rows)
    columns: list[Column[CopiedTable]] = [
        Column("table", lambda each: each.table),
        Column("rows", lambda each: each.rows, number=True),
        Column("digest", lambda each: each.digest, spare=1),
    ]
    show(copied, columns, form)
    rows = counted(sum(each.rows for each in copied), "row")
    message(f"{_shown(to)} has {rows} in {len(copied)} tables, as they are here. Name it as `ledger` now.")


@app.command(epilog=_VERIFY_EXAMPLES)
@selects(keys=True)
def verify(
    _ctx: typer.Context, book: BookReader, selection: Selection, form: FormatOption = Format.TABLE
) -> None:
    """Build every state and pointer again from the log alone, and compare them with the tables.

    Runs that were retired are read from the archive.
    The exit code is 1 if there is any difference. Nothing is changed.
    """
    from sealbook.cli.table import Column
    from sealbook.status.archive import RunArchive
    from sealbook.status.verify import LogDifference, Verified, verify_ledger

    verified = Verified()
    archive = RunArchive(book.settings.retention.archive)
    differences = list(verify_ledger(book.ledger, verified, archive, selection))
    columns: list[Column[LogDifference]] = [
        Column("partition", lambda each: each.key),
        Column("field", lambda each: each.field, style=lambda _: "red"),
        Column("from the log", lambda each: each.from_log, wraps=True),
        Column("in the table", lambda each: each.in_table, wraps=True),
    ]
    if form is Format.JSON:
        show_json(map(flat, differences))
    elif differences:
        show(differences, columns, form)
    passed_over = f"; passed over, as a run of theirs is in neither log nor archive: {verified.retired:,}"
    message(
        f"Verified {counted(verified.partitions, 'partition')}; differences: {len(differences):,}"
        + (passed_over if verified.retired else "")
    )
    if differences:
        raise typer.Exit(ExitCode.FAILED)


def _shown(url: str) -> str:
    from sealbook.ledger.db.urls import parse_url, printable

    return printable(parse_url(url))
