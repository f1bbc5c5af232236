"""`sealbook accounts`: which accounts a source tells of, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode, report
from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import open_book
from sealbook.cli.options import ActorOption, FormatOption, ReasonOption, user_name
from sealbook.cli.output import Format, message, show
from sealbook.config import check_selection
from sealbook.errors import ConfigError, InvalidInput
from sealbook.model.keys import normalise_customer_id
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Collection

    from sealbook.book import Book
    from sealbook.cli.table import Column
    from sealbook.config import SourceSettings
    from sealbook.views.accounts import AccountEvent, AccountLine, RefreshLine

_FEW = 5

app = typer.Typer(
    cls=DefaultGroup,
    help="Accounts that sources tell of, for `customers: {discover: ROOT}`."
    "\n\n`sealbook accounts` is short for `list`.",
)

_LIST_EXAMPLES = """
[bold]Examples[/bold]
  sealbook accounts
  sealbook accounts list --history
  sealbook accounts list --source google_ads --format json
"""
_REFRESH_EXAMPLES = """
[bold]Examples[/bold]
  sealbook accounts refresh
  sealbook accounts refresh --source google_ads --format json
"""
_FORGET_EXAMPLES = """
[bold]Examples[/bold]
  sealbook accounts forget 123-456-7890 --reason "the client left"
"""

SourcesOption = Annotated[
    list[str] | None,
    typer.Option("--source", metavar="NAME", help="Only this source; give it again for more."),
]


@app.command("list", epilog=_LIST_EXAMPLES)
def list_(
    ctx: typer.Context,
    source: SourcesOption = None,
    history: Annotated[
        bool, typer.Option("--history", help="What changed of them, and when, in the order of time.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the accounts that sources told of, which days are expected of each, and why no more are."""
    from sealbook.views.accounts import account_events, account_lines

    with open_book(ctx) as book:
        sources = _discovering(book, source)
        reader = book.ledger.reader.accounts
        if history:
            show(account_events(reader, sources), _event_columns(form), form)
        else:
            show(list(account_lines(reader, sources)), _columns(form), form)
        for each in sources:
            if reader.refresh(each.name).refreshed_at is None:
                message(f"{each.name} was not asked for its accounts yet: `sealbook accounts refresh`.")


@app.command(epilog=_REFRESH_EXAMPLES)
def refresh(ctx: typer.Context, source: SourcesOption = None, form: FormatOption = Format.TABLE) -> None:
    """Ask sources which accounts there are, and keep what they say.

    What has vanished stays expected, and is reported. A source that fails changes nothing.
    """
    from sealbook.errors import SealbookError
    from sealbook.views.accounts import RefreshLine

    lines, errors = [], []
    with open_book(ctx) as book:
        for each in _discovering(book, source):
            try:
                lines.append(RefreshLine.of(each.name, book.accounts.refresh(each.name)))
            except SealbookError as error:
                errors.append(error)
    if not lines:
        raise errors[0]
    show(lines, _refresh_columns(form), form)
    for line in lines:
        if line.vanished:
            gone = f"{', '.join(line.vanished[:_FEW])}{' …' if len(line.vanished) > _FEW else ''}"
            message(
                f"{line.source} tells no more of {gone}: they stay expected. `sealbook accounts` says more."
            )
    for failed in errors:
        report(failed, ctx.obj)
    if errors:
        raise typer.Exit(ExitCode.DONE_IN_PART)


@app.command(epilog=_FORGET_EXAMPLES)
def forget(
    ctx: typer.Context,
    customer: Annotated[str, typer.Argument(metavar="ID", help="The account; hyphens are fine.")],
    reason: ReasonOption,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="Its source, where several discover theirs."),
    ] = None,
    actor: ActorOption = None,
) -> None:
    """Expect nothing more of an account that has vanished, from the day on which it was gone.

    Its past stays. Should its source tell of it again, it is expected again.
    """
    with open_book(ctx) as book:
        found = _discovering(book, None if source is None else [source])
        if len(found) > 1:
            raise InvalidInput(
                f"several sources discover accounts: {', '.join(each.name for each in found)}",
                field="source",
                remedy="Name one by --source.",
            )
        customer_id = normalise_customer_id(customer)
        book.ledger.accounts.forget(found[0].name, customer_id, actor=actor or user_name(), reason=reason)
    message(f"Nothing more is expected of account {customer_id} of {found[0].name}.")


def _discovering(book: Book, names: Collection[str] | None) -> list[SourceSettings]:
    """Return the sources that are chosen and discover their accounts; ConfigError if there is none."""
    check_selection(book.settings.sources, Selection(source=names))
    found = [
        each
        for name, each in book.settings.sources.items()
        if each.discovery is not None and (names is None or name in names)
    ]
    if not found:
        raise ConfigError(
            "no source that is chosen discovers its accounts: they are listed in the settings",
            remedy="Write `customers: {discover: ROOT}` to have them found.",
        )
    return found


def _columns(form: Format) -> list[Column[AccountLine]]:
    if form is Format.JSON:
        return []
    from sealbook.cli.table import Column

    return [
        Column("source", lambda each: each.source, spare=5),
        Column("account", lambda each: each.customer_id),
        Column("name", lambda each: each.name, spare=2),
        Column("status", lambda each: each.status if each.presence == "seen" else each.presence),
        Column("level", lambda each: each.level, number=True, spare=4),
        Column("time zone", lambda each: each.time_zone, spare=1),
        Column("currency", lambda each: each.currency, spare=4),
        Column("labels", lambda each: ", ".join(each.labels), spare=3),
        Column("found (UTC)", lambda each: each.found_at, spare=4),
        Column("first day", lambda each: each.first_day),
        Column("last day", lambda each: each.last_day),
        Column("expected", lambda each: "yes" if each.expected else f"no: {each.why_not or 'see problem'}"),
        Column("problem", lambda each: each.problem, wraps=True),
    ]


def _event_columns(form: Format) -> list[Column[AccountEvent]]:
    if form is Format.JSON:
        return []
    from sealbook.cli.table import Column

    return [
        Column("at (UTC)", lambda each: each.at),
        Column("source", lambda each: each.source, spare=3),
        Column("account", lambda each: each.customer_id),
        Column("what", lambda each: each.what),
        Column("before", lambda each: each.before),
        Column("after", lambda each: each.after),
        Column("from day", lambda each: each.from_day, spare=1),
        Column("by", lambda each: each.actor, spare=2),
    ]


def _refresh_columns(form: Format) -> list[Column[RefreshLine]]:
    if form is Format.JSON:
        return []
    from sealbook.cli.table import Column

    return [
        Column("source", lambda each: each.source),
        Column("at (UTC)", lambda each: each.at),
        Column("accounts", lambda each: each.accounts, number=True),
        Column("found", lambda each: len(each.found), number=True),
        Column("changed", lambda each: len(each.changed), number=True),
        Column("vanished", lambda each: len(each.vanished), number=True),
    ]
