"""`sealbook sql`: ask what is published, in SQL, without Spark."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealbook.cli.invocation import open_book
from sealbook.cli.options import CutOption, StrictOption
from sealbook.cli.output import message, show_json
from sealbook.errors import InvalidInput
from sealbook.views.encoding import encode

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
            _check_distinct(answer.column_names)
            show_json(dict(zip(answer.column_names, row, strict=True)) for row in _rows(answer))
        case SqlFormat.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(answer.column_names)
            writer.writerows(_rows(answer, nested_as_text=True))
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
        print_table(_rows(answer, nested_as_text=True), columns)
    else:
        message(f"No rows. Columns: {', '.join(answer.column_names)}")


def _check_distinct(names: Sequence[str]) -> None:
    """Refuse an answer in which an object would have a field twice."""
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise InvalidInput(
            f"the answer has several columns {repeated[0]!r}, but JSON has each field once",
            field="SQL",
            remedy="Give them names: `select … as …`.",
        )


def _is_number(column_type: pa.DataType) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(column_type) for is_kind in kinds)


def _rows(answer: pa.Table, *, nested_as_text: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yield rows; arrays, structs and maps as JSON has them, or as its text."""
    import pyarrow as pa

    is_text = [nested_as_text and pa.types.is_nested(field.type) for field in answer.schema]
    for batch in answer.to_batches():
        values = (column.to_pylist(maps_as_pydicts="lossy") for column in batch.columns)
        yield from zip(
            *(map(_as_text, each) if text else each for each, text in zip(values, is_text, strict=True)),
            strict=True,
        )


def _as_text(value: object) -> str | None:
    return None if value is None else encode(value).decode()
