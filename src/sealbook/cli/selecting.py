"""How every command that chooses partitions says which: the same options, help and errors on all of them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Literal, ParamSpec, get_type_hints, overload

import typer

from sealbook.cli.invocation import load_settings, open_book
from sealbook.cli.options import KEY_FORM
from sealbook.model import Status
from sealbook.model.selection import Selection
from sealbook.views.choosing import selection_of

if TYPE_CHECKING:
    from sealbook.book import Book, BookReader
    from sealbook.config import Settings

P = ParamSpec("P")

_GIVEN = 3
"""A command begins with what `selects` gives it: the context, the book, the selection."""


def _statuses(incomplete: str) -> list[str]:
    return [status for status in Status if status.startswith(incomplete)]


_DATE = "YYYY-MM-DD, today or yesterday (UTC)"
_OPTIONS: dict[str, Any] = {
    "keys": Annotated[list[str] | None, typer.Argument(metavar="KEY", help=f"Partitions, as {KEY_FORM}.")],
    "query": Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="The name of a query: short for --query.")
    ],
    "source": Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this source; may be given again.")
    ],
    "customers": Annotated[
        list[str] | None,
        typer.Option(
            "--customer-id",
            "--customer",
            metavar="ID",
            help="Only this customer; hyphens are fine; may be given again.",
        ),
    ],
    "queries": Annotated[
        list[str] | None,
        typer.Option("--query-name", "--query", metavar="NAME", help="Only this query; may be given again."),
    ],
    "since": Annotated[
        str | None, typer.Option(metavar="DATE", help=f"Only logical dates from this day on: {_DATE}.")
    ],
    "until": Annotated[
        str | None, typer.Option(metavar="DATE", help=f"Only logical dates up to this day: {_DATE}.")
    ],
    "day": Annotated[str | None, typer.Option(metavar="DATE", help=f"Only this logical date: {_DATE}.")],
    "lookback": Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With --day: that day and those before it, N in all."),
    ],
    "runs": Annotated[
        list[str] | None,
        typer.Option("--run-id", "--run", metavar="ULID", help="Only this run; may be given again."),
    ],
    "statuses": Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            metavar="|".join(Status),
            help="Only this status; may be given again.",
            autocompletion=_statuses,
        ),
    ],
}
_NAMES = {"source", "queries"}
_PARTITIONS = {*_NAMES, "customers", "since", "until", "day"}


@overload
def selects(
    *,
    writes: Literal[True],
    keys: bool = ...,
    query: bool = ...,
    runs: bool = ...,
    statuses: bool = ...,
    lookback: bool = ...,
) -> Callable[[Callable[Concatenate[typer.Context, Book, Selection, P], None]], Callable[..., None]]: ...
@overload
def selects(
    *, configuration: Literal[True], query: bool = ...
) -> Callable[[Callable[Concatenate[typer.Context, Settings, Selection, P], None]], Callable[..., None]]: ...
@overload
def selects(
    *,
    keys: bool = ...,
    query: bool = ...,
    runs: bool = ...,
    statuses: bool = ...,
    lookback: bool = ...,
    catches_up: bool = ...,
) -> Callable[
    [Callable[Concatenate[typer.Context, BookReader, Selection, P], None]], Callable[..., None]
]: ...
def selects(
    *, writes: bool = False, configuration: bool = False, catches_up: bool = False, **further: bool
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that choose partitions; it is called with the book and a checked selection.

    It gets the book if it `writes`, and else the side that cannot, once what is projected has caught up with
    the log if it `catches_up`; with `configuration` it gets the settings alone, chooses by source and query,
    and the ledger is not opened. The others add a way to choose: `keys` and `query` as arguments, `runs`,
    `statuses`, and `lookback` from a day.
    """
    wanted = {name for name, is_wanted in further.items() if is_wanted}
    wanted |= _NAMES if configuration else _PARTITIONS
    options = {name: option for name, option in _OPTIONS.items() if name in wanted}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def selecting(ctx: typer.Context, **values: Any) -> None:
            selection = selection_of(**{name: values.pop(name) for name in options})
            if configuration:
                command(ctx, _checked_settings(ctx, selection), selection, **values)
                return
            ctx.obj.has_begun = writes
            with open_book(ctx) as book:
                # To look at a partition that nobody knows is no slip: it is pending (R-STATE-1).
                if writes or not selection.keys:
                    book.check(selection)
                if catches_up:
                    book.catch_up()
                command(ctx, book if writes else book.reader, selection, **values)

        _describe(selecting, command, options)
        return selecting

    return decorate


def _checked_settings(ctx: typer.Context, selection: Selection) -> Settings:
    from sealbook.config import check_selection

    settings = load_settings(ctx)
    check_selection(settings.sources, selection)
    return settings


def _describe(selecting: Any, command: Any, options: dict[str, Any]) -> None:
    """Let Typer see a function that has the options of the selection, and then the command's own."""
    own = list(signature(command).parameters.values())[_GIVEN:]
    # Only these are evaluated: the types of what the command is given need not be imported.
    annotations = SimpleNamespace(__annotations__={each.name: each.annotation for each in own})
    hints = get_type_hints(annotations, command.__globals__, include_extras=True)
    parameters = [
        Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
        *(
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=options[name])
            for name in options
        ),
        *(each.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[each.name]) for each in own),
    ]
    selecting.__name__, selecting.__doc__ = command.__name__, command.__doc__
    selecting.__module__ = command.__module__
    selecting.__signature__ = Signature(parameters)
    selecting.__annotations__ = {each.name: each.annotation for each in parameters}
