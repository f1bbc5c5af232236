"""Options and arguments that several commands share. Here hyphens leave customer ids (R-KEY-2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated, TypeVar

import typer

from sealbook.cli.output import Format
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId, Status
from sealbook.model.keys import check_customer_id, check_name, normalise_customer_id, parse_date

T = TypeVar("T")

KEY_FORM = "SOURCE/CUSTOMER_ID/QUERY_NAME/YYYY-MM-DD"


def _parsed_by(parse: Callable[[str], T]) -> Callable[[str | T], T]:
    """Make the model's own check the parser of an option, and its refusal wrong usage."""

    def parser(value: str | T) -> T:
        if not isinstance(value, str):  # Typer passes defaults through too
            return value
        try:
            return parse(value)
        except InvalidInput as error:
            raise typer.BadParameter(str(error)) from error

    return parser


def parse_key(text: str) -> PartitionKey:
    """Read a key as a person types it: its customer id may have hyphens."""
    parts = text.split("/")
    return PartitionKey.parse("/".join([*parts[:1], *map(normalise_customer_id, parts[1:2]), *parts[2:]]))


def _customer_id(text: str) -> str:
    customer_id = normalise_customer_id(text)
    check_customer_id("", customer_id)  # of any source; the command knows whether one is named
    return customer_id


def _name(field: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        check_name(field, text)
        return text

    return parse


def _day(field: str) -> Callable[[str], date]:
    return lambda text: parse_date(field, text)


KeyArgument = Annotated[
    PartitionKey,
    typer.Argument(metavar="KEY", help=f"A partition, as {KEY_FORM}.", parser=_parsed_by(parse_key)),
]
KeysArgument = Annotated[
    list[PartitionKey] | None,
    typer.Argument(metavar="KEY", help=f"Partitions, as {KEY_FORM}.", parser=_parsed_by(parse_key)),
]
SourceOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only this source.", parser=_parsed_by(_name("source"))),
]
CustomerIdOption = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Only this customer; hyphens are fine.", parser=_parsed_by(_customer_id)),
]
CustomersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--customer-id",
        "--customer",
        metavar="ID",
        help="Only this customer; hyphens are fine; may be given again.",
        parser=_parsed_by(normalise_customer_id),
    ),
]
QueryNameOption = Annotated[
    str | None,
    typer.Option(
        "--query-name",
        "--query",
        metavar="NAME",
        help="Only this query.",
        parser=_parsed_by(_name("query_name")),
    ),
]
SinceOption = Annotated[
    date | None,
    typer.Option(
        metavar="DATE", help="Only logical dates from this day on.", parser=_parsed_by(_day("since"))
    ),
]
UntilOption = Annotated[
    date | None,
    typer.Option(metavar="DATE", help="Only logical dates up to this day.", parser=_parsed_by(_day("until"))),
]
QueriesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--query-name",
        "--query",
        metavar="NAME",
        help="Only this query; may be given again.",
        parser=_parsed_by(_name("query_name")),
    ),
]
FirstDayOption = Annotated[
    date,
    typer.Option("--since", metavar="DATE", help="The first logical date.", parser=_parsed_by(_day("since"))),
]
LastDayOption = Annotated[
    date,
    typer.Option("--until", metavar="DATE", help="The last logical date.", parser=_parsed_by(_day("until"))),
]
RunIdOption = Annotated[
    RunId | None,
    typer.Option("--run-id", "--run", metavar="ULID", help="This run.", parser=_parsed_by(RunId)),
]
QueryNameArgument = Annotated[
    str,
    typer.Argument(metavar="QUERY", help="The name of a query.", parser=_parsed_by(_name("query_name"))),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Leave out partitions whose newest run is not loaded yet.")
]
CutOption = Annotated[str | None, typer.Option("--cut", metavar="TOKEN", help="Ask as of this cut.")]
StatusOption = Annotated[Status | None, typer.Option(help="Only this status.")]
LimitOption = Annotated[int | None, typer.Option(metavar="N", min=1, help="Show at most so many.")]
FormatOption = Annotated[Format, typer.Option("--format", help="For people, or for programs.")]
