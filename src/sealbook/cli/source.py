"""`sealbook source`: what a source answers, before any of it is sealed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_object
from sealbook.errors import InvalidInput
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book.trying import TriedQuery

app = typer.Typer(help="What a source answers.", no_args_is_help=True)

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook source try campaign_daily --customer 123-456-7890 --date yesterday
  sealbook source try --file new.gaql --customer 123-456-7890 --date 2026-01-01 --rows 3
  sealbook source try campaign_daily --customer 123-456-7890 --date 2026-01-01 --format json
"""


@app.callback()
def _group() -> None:  # or Typer would take a group of one command for that command
    """What a source answers."""


@app.command("try", epilog=_EXAMPLES)
def try_(
    ctx: typer.Context,
    customer: Annotated[
        str,
        typer.Option("--customer-id", "--customer", metavar="ID", help="Of this customer; hyphens are fine."),
    ],
    day: Annotated[str, typer.Option("--date", "--day", metavar="DATE", help="Of this logical date.")],
    query: Annotated[
        str | None,
        typer.Argument(metavar="[QUERY]", help="A query of the catalogue, or a name for a new one."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of this source, where several would do.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="This text, in the place of that of the catalogue.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The text in this file; - is standard input.")
    ] = None,
    rows: Annotated[int, typer.Option(metavar="N", min=0, help="How many rows to show.")] = 10,
    form: FormatOption = Format.TABLE,
) -> None:
    """Ask for a partition of a query, and show its first rows and a contract that they would hold.

    The query is one of the catalogue, or a text that is not there yet. Nothing is sealed or recorded, and no
    Spark is started; the source counts it as one request. Of up to 1,000 rows the contract is proposed.
    """
    from sealbook.model.keys import normalise_customer_id, parse_date
    from sealbook.views.choosing import day_of

    with open_book(ctx) as book:
        tried = book.try_query(
            query,
            normalise_customer_id(customer),
            day_of(day) or parse_date("date", day),
            source=source,
            text=_text(text, file),
            rows=rows,
        )
    if form is Format.JSON:
        show_object(_as_dict(tried))
    else:
        _print(tried)


def _text(text: str | None, file: Path | None) -> str | None:
    if text is not None and file is not None:
        raise InvalidInput("a text and a file are given", field="text", remedy="Give --text or --file.")
    if file is None:
        return text
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput.of("file", str(file), f"a file of text ({type(error).__name__})") from error


def _as_dict(tried: TriedQuery) -> dict[str, object]:
    from dataclasses import asdict

    import msgspec

    return {
        **asdict(tried.key),
        "api_version": tried.query.api_version,
        "is_whole": tried.is_whole,
        "rows": [msgspec.json.decode(line) for line in tried.lines],
        "contract": None if tried.proposal is None else asdict(tried.proposal.contract),
        "notes": () if tried.proposal is None else tried.proposal.notes,
    }


def _print(tried: TriedQuery) -> None:
    from sealbook.cli.table import cell
    from sealbook.config.contract_yaml import contract_yaml

    for line in tried.lines:
        typer.echo(cell(line.decode("utf-8", "backslashreplace")))
    if tried.proposal is None:
        message(f"{tried.key} has no rows. Nothing was sealed.")
        return
    typer.echo(f"\n{contract_yaml(tried.proposal.contract, tried.proposal.notes)}", nl=False)
    of = "all" if tried.is_whole else "the first"
    message(f"{of.capitalize()} {counted(len(tried.lines), 'row')} of {tried.key}. Nothing was sealed.")
