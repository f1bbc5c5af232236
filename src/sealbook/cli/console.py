"""`sealbook console`: the book in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli import console_tokens
from sealbook.cli.groups import DefaultGroup
from sealbook.cli.invocation import load_settings
from sealbook.cli.options import user_name
from sealbook.cli.output import message
from sealbook.errors import MissingExtra

if TYPE_CHECKING:
    from sealbook.book import Book, BookReader
    from sealbook.config import Settings
    from sealbook.config.console import ConsoleSettings
    from sealbook.console.security.guard import Identity

PORT = 8700

app = typer.Typer(
    cls=DefaultGroup,
    help="The book in a browser."
    "\n\n`sealbook console` is short for `serve`, which has --host, --port and --read-only.",
)

_SERVE_EXAMPLES = """
[bold]Examples[/bold]
  sealbook console
  sealbook console --read-only --no-open
  sealbook console --host 0.0.0.0 --port 8080
"""


@app.command(epilog=_SERVE_EXAMPLES)
def serve(
    ctx: typer.Context,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen. Others need tokens or a proxy.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="The port; 0 takes one that is free.")
    ] = PORT,
    read_only: Annotated[bool, typer.Option("--read-only", help="Let nobody act.")] = False,
    open_: Annotated[
        bool | None, typer.Option("--open/--no-open", help="Open a browser. Default: at a terminal.")
    ] = None,
) -> None:
    """Show every partition, why it is as it is, and what can be done about it, until Ctrl-C.

    The printed address has a token in it, which the browser swaps for a cookie: keep it to yourself.
    """
    import sys

    with _extra():
        from sealbook.console.access import check_address, guard_of, is_loopback
        from sealbook.console.app import create_app
        from sealbook.console.console import Console
        from sealbook.console.security.local import LocalToken
        from sealbook.console.security.people import Person, Role
        from sealbook.console.serving import bound_socket, make_server
    settings = load_settings(ctx)
    identities = _identities(settings.console)
    is_own = is_loopback(host) and settings.console.proxy is None and settings.console.url is None
    check_address(host, settings.console)
    with _reader(settings, read_only) as book, bound_socket(host, port) as bound:
        actual = bound.getsockname()[1]
        url = settings.console.url or f"http://{host}:{actual}"
        if is_own:
            owner = Person(user_name(), Role.VIEWER if read_only else Role.OPERATOR)
            local = LocalToken(owner, actual)
            identities = (local, *identities)
            url = f"{url}/?token={local.token}"

        def ready() -> None:
            message(f"The console is at {url}\nCtrl-C ends it.")
            if sys.stdout.isatty() if open_ is None else open_:
                typer.launch(url)

        console = Console(book, None if read_only else partial(_book_to_act_on, settings))
        guard = guard_of(host, actual, settings.console, identities)
        with closing(console):  # who cannot wait for the server to end leaves nothing running either
            make_server(create_app(console, guard), ready).run(sockets=[bound])


@contextmanager
def _extra() -> Iterator[None]:
    """Name the extra to install if what is imported here is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"the console needs {error.name}", remedy="Install it: pip install 'sealbook[console]'."
        ) from error


def _identities(settings: ConsoleSettings) -> tuple[Identity, ...]:
    """Return the ways by which others than the owner are known: those that are configured."""
    from sealbook.console.security.proxies import ProxyIdentity
    from sealbook.console.security.token_identity import TokenIdentity
    from sealbook.console.security.tokens import TokenFile

    proxy = ProxyIdentity.of(settings)
    return (*([] if proxy is None else [proxy]), TokenIdentity(TokenFile(settings.tokens)))


def _reader(settings: Settings, read_only: bool) -> BookReader:
    """Open the side of the book that cannot write, with the rights of a viewer.

    A ledger is made or migrated only where it may be written to.
    """
    from sealbook.book import BookReader
    from sealbook.ledger.reader import open_ledger_reader
    from sealbook.ledger.roles import url_in_role

    if not read_only:
        with _book_to_act_on(settings) as book:
            book.catch_up()
    url = url_in_role(settings.ledger, "viewer", settings.console.ledger_roles[0])
    return BookReader(settings, open_ledger_reader(url, scope=settings.scope))


def _book_to_act_on(settings: Settings) -> Book:
    """Open the book with the rights of an operator."""
    from sealbook.book import Book
    from sealbook.ledger import ledger_exists
    from sealbook.ledger.roles import url_in_role

    if not ledger_exists(settings.ledger):
        return Book(settings)
    return Book(
        replace(settings, ledger=url_in_role(settings.ledger, "control", settings.console.ledger_roles[1]))
    )


app.add_typer(console_tokens.app, name="token")
