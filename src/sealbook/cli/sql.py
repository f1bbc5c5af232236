"""`sealbook sql`: ask what is published, in SQL, without Spark."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.output import show_json

if TYPE_CHECKING:
    import pyarrow as pa

app = typer.Typer()

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook sql "select logical_date, sum(metrics_clicks) from campaign_daily group by all order by all"
  sealbook sql "select * from campaign_daily where customer_id = '1234567890'" --format csv
"""


class SqlFormat(StrEnum):
    """How an answer is shown."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@app.command(epilog=_EXAMPLES)
def sql(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="SQL", help="A question; every query is a table.")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave out partitions whose newest run is not loaded yet.")
    ] = False,
    cut: Annotated[str | None, typer.Option(metavar="TOKEN", help="Ask as of this cut.")] = None,
    form: Annotated[
        SqlFormat, typer.Option("--format", help="For people, or for programs.")
    ] = SqlFormat.TABLE,
) -> None:
    """Answer a question in SQL over what is published.

    Of each partition it sees the rows of one run; failed and pending ones have none.
    """
    with open_book(ctx) as book:
        answer = book.sql(question, strict=strict, cut=cut)
    match form:
        case SqlFormat.JSON:
            show_json(dict(zip(answer.column_names, row, strict=True)) for row in _rows(answer))
        case SqlFormat.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(answer.column_names)
            writer.writerows(_rows(answer))
        case SqlFormat.TABLE:
            from sealbook.cli.table import Column, print_table

            columns: list[Column[tuple[Any, ...]]] = [
                Column(name, lambda row, at=position: row[at])  # type: ignore[misc]
                for position, name in enumerate(answer.column_names)
            ]
            print_table(_rows(answer), columns)


def _rows(answer: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in answer.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
