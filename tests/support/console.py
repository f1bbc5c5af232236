"""A console on a book, asked in this process: by its owner, by people with a role, or by nobody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

import sealbook
from sealbook.book import Book
from sealbook.console.access import guard_of
from sealbook.console.app import create_app
from sealbook.console.console import Console
from sealbook.console.rehearsals import Rehearsals
from sealbook.console.security.guard import Identity
from sealbook.console.security.people import Person, Role

HOST = "127.0.0.1:8700"
ORIGIN = f"http://{HOST}"
ANN = Person("ann", Role.OPERATOR)
VIC = Person("vic", Role.VIEWER)


class Always:
    """An identity by which everybody is the same person."""

    def __init__(self, person: Person) -> None:
        self._person = person

    def person(self, _request: Request) -> Person:
        """Return them."""
        return self._person

    def welcome(self, _request: Request) -> Response | None:
        """Let nobody in: they are."""
        return None

    def sign_in(self, _secret: str) -> tuple[str, str] | None:
        """Know nobody by a secret."""
        return None


@contextmanager
def asking(
    folder: Path,
    person: Person = ANN,
    *,
    read_only: bool = False,
    identities: tuple[Identity, ...] | None = None,
    rehearses: Sequence[str] | None = None,
    **settings: Any,
) -> Iterator[TestClient]:
    """Yield a client that asks a console on the book of a folder; `settings` change its section `console`.

    `rehearses` is a command that rehearses in the place of the real one.
    """
    with sealbook.open(folder, read_only=True) as book:
        changed = replace(book.settings, console=replace(book.settings.console, **settings))
        book.settings = changed
        rehearsals = None if rehearses is None else Rehearsals(rehearses)
        console = Console(book, None if read_only else lambda: Book(changed), rehearsals)
        guard = guard_of("127.0.0.1", 8700, changed.console, identities or (Always(person),))
        with TestClient(create_app(console, guard), ORIGIN, follow_redirects=False) as client:
            client.headers["Sec-Fetch-Site"] = "same-origin"
            yield client


def console_of(client: TestClient) -> Console:
    """Return the console that a client asks."""
    assert isinstance(client.app, Starlette)
    console: Console = client.app.state.console
    return console
