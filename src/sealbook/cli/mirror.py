"""`sealbook mirror`: what is published, kept as tables of Delta or Iceberg."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode
from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show, show_object
from sealbook.errors import InvalidInput
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.cli.table import Column
    from sealbook.mirror.mirroring import Mirrored, MirrorStanding

app = typer.Typer(
    no_args_is_help=True, help="What is published, kept as tables of Delta or Iceberg for other engines."
)

_RUN_EXAMPLES = """
[bold]Examples[/bold]
  sealbook mirror run
  sealbook mirror run lake --follow
  sealbook mirror run lake --rebuild
"""
_LIST_EXAMPLES = """
[bold]Examples[/bold]
  sealbook mirror list
  sealbook mirror list --format json
"""
_LOOK_AGAIN_SECONDS = 1.0


@app.command(epilog=_RUN_EXAMPLES)
def run(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]", help="These mirrors. Default: all.")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Say all of it anew, in one commit.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare every file with what is published, and put it right.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, until Ctrl-C.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Bring mirrors up to what is published now: one commit for each query that changed.

    A mirror goes on from its own latest commit. One that somebody else changed is made anew, and it is said.
    With --follow and --format json it is one object a line.
    """
    with open_book(ctx) as book:
        mirrors = [book.mirror(name) for name in _names(book, names)]
        done = [each for mirror in mirrors for each in mirror.run(rebuild=rebuild, check=check)]
        if follow:
            while True:
                _tell_each(done, form)
                time.sleep(_LOOK_AGAIN_SECONDS)
                done = [each for mirror in mirrors for each in mirror.run()]
    show(done, _done_columns(form), form)
    _tell(done)
    failed = sum(each.failed is not None for each in done)
    if failed:
        raise typer.Exit(ExitCode.FAILED if failed == len(done) else ExitCode.DONE_IN_PART)


@app.command("list", epilog=_LIST_EXAMPLES)
def list_(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """List the mirrors, each query with its latest commit there and what that does not have yet."""
    with open_book(ctx) as book:
        found = [each for name in book.settings.mirrors for each in book.mirror(name).standings()]
    show(found, _standing_columns(form), form)
    if not found:
        message("No mirror is configured: `mirrors` in sealbook.yaml names them.")


def _names(book: Book, names: list[str] | None) -> list[str]:
    wanted = list(dict.fromkeys(names or book.settings.mirrors))
    if not wanted:
        raise InvalidInput(
            "no mirror is configured",
            field="mirror",
            remedy="Configure one under `mirrors` in sealbook.yaml.",
        )
    return wanted


def _tell_each(done: list[Mirrored], form: Format) -> None:
    """Say what a round of following came to, if anything."""
    news = [each for each in done if each.commit is not None or each.failed is not None]
    if form is Format.JSON:
        for each in news:
            show_object(each._asdict())
    else:
        for each in news:
            if each.commit is not None:
                typer.echo(f"{_name(each)}: commit {each.commit}, {counted(each.partitions, 'partition')}")
    _tell(news)


def _tell(done: list[Mirrored]) -> None:
    for each in done:
        if each.failed is not None:
            message(f"{_name(each)} failed: {each.failed}")
        elif each.rebuilt is not None:
            message(f"{_name(each)} was made anew: {each.rebuilt}.")


def _name(each: Mirrored) -> str:
    return f"{each.mirror} {each.source}/{each.query_name}"


def _done_columns(form: Format) -> list[Column[Mirrored]]:
    if form is Format.JSON:
        return []
    from sealbook.cli.table import Column

    return [
        Column("mirror", lambda each: each.mirror),
        Column("query", lambda each: f"{each.source}/{each.query_name}"),
        Column("commit", lambda each: each.commit or ("failed" if each.failed else "as it was")),
        Column("partitions", lambda each: f"{each.partitions:,}", number=True),
        Column("files added", lambda each: f"{each.added:,}", number=True, spare=1),
        Column("copied", lambda each: f"{each.copied:,}", number=True, spare=2),
        Column("removed", lambda each: f"{each.removed:,}", number=True, spare=1),
    ]


def _standing_columns(form: Format) -> list[Column[MirrorStanding]]:
    if form is Format.JSON:
        return []
    from sealbook.cli.table import Column

    return [
        Column("mirror", lambda each: each.mirror),
        Column("query", lambda each: f"{each.source}/{each.query_name}"),
        Column("commit", lambda each: each.commit),
        Column("committed (UTC)", lambda each: each.committed_at, spare=2),
        Column("not mirrored", lambda each: _lag(each), number=True),
    ]


def _lag(each: MirrorStanding) -> str:
    return "all" if each.changes is None else f"{each.changes:,}{'+' if each.more else ''}"
