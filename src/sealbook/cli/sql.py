"""`sealbook sql`: ask what is published, in SQL, without Spark."""

from __future__ import annotations

import sys
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import CutOption, StrictOption
from sealbook.cli.output import message, show_json
from sealbook.views.sql_answer import objects_of, rows_of, write_csv

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
    strict: StrictOption = False,
    cut: CutOption = None,
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
            show_json(objects_of(answer))
        case SqlFormat.CSV:
            write_csv(answer, sys.stdout)
        case SqlFormat.TABLE:
            show_answer(answer)


def show_answer(answer: pa.Table) -> None:
    """Print an answer for people."""
    from sealbook.cli.table import Column, print_table

    columns: list[Column[tuple[Any, ...]]] = [
        Column(field.name, itemgetter(position), number=_is_number(field.type))
        for position, field in enumerate(answer.schema)
    ]
    if answer.num_rows:
        print_table(rows_of(answer, nested_as_text=True), columns)
    else:
        message(f"No rows. Columns: {', '.join(answer.column_names)}")


def _is_number(column_type: pa.DataType) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(column_type) for is_kind in kinds)
