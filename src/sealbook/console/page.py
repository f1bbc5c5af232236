"""A page at its address, and beside it, at the same address with `.json`, what the command prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sealbook.clock import utc_now
from sealbook.console.answers import Answer, Gathered
from sealbook.console.rendering import FRAGMENT, render
from sealbook.errors import InvalidInput
from sealbook.model.selection import Selection
from sealbook.views.choosing import selection_of
from sealbook.views.encoding import encode

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.console.console import Console
    from sealbook.console.security.people import Person


@dataclass(frozen=True, slots=True)
class Ask:
    """What a page is asked: the book, and what the address says."""

    request: Request

    @property
    def console(self) -> Console:
        """What pages share."""
        console: Console = self.request.app.state.console
        return console

    @property
    def book(self) -> BookReader:
        """The book, which cannot write."""
        return self.console.book

    @property
    def person(self) -> Person:
        """Who asks."""
        person: Person = self.request.state.person
        return person

    @property
    def path(self) -> Mapping[str, str]:
        """What the path of the address names."""
        return self.request.path_params

    def one(self, name: str) -> str | None:
        """Return a filter of the address; None if it is not given, or empty as forms send it."""
        return self.request.query_params.get(name, "").strip() or None

    def many(self, name: str) -> list[str]:
        """Return a filter of the address that may be given again, or with commas between."""
        given = self.request.query_params.getlist(name)
        return [part.strip() for text in given for part in text.split(",") if part.strip()]

    def whole(self, name: str, default: int, *, most: int | None = None) -> int:
        """Return a number of the address that is at least 1."""
        text = self.one(name)
        if text is None:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if number < 1 or (most is not None and number > most):
            expected = "a whole number from 1 on" if most is None else f"a whole number from 1 to {most:,}"
            raise InvalidInput.of(name, text, expected)
        return number

    def selection(self, **further: Any) -> Selection:
        """Return which partitions the address means, as a command's options do; names must be known."""
        chosen = selection_of(
            source=self.many("source"),
            customers=self.many("customer"),
            queries=self.many("query"),
            since=self.one("since"),
            until=self.one("until"),
            day=self.one("day"),
            **further,
        )
        if not chosen.keys:
            self.book.check(chosen)
        return chosen


Gather = Callable[[Ask], Answer]


def page(path: str, template: str, gather: Gather, *, lasts: int = 60, shared: bool = True) -> list[Route]:
    """Return the routes of a page: `path` renders the template, and `path.json` is its content.

    `gather` reads the book, in a thread of its own. What it returns depends on the book and the address
    alone, unless it is not `shared`: then it is gathered for each who asks. It `lasts` so many seconds, or
    until the ledger moves.
    """

    def gathered(request: Request) -> Gathered:
        ask = Ask(request)
        if not shared:
            return Gathered(gather(ask), "", utc_now())
        # `.json` and page are one answer.
        name = f"{request.url.path.removesuffix('.json')}?{request.url.query}"
        return ask.console.gathered(name, lambda: gather(ask), lasts=lasts)

    async def as_page(request: Request) -> Response:
        found = await run_in_threadpool(gathered, request)
        unchanged = _unchanged(request, found, "page")
        if unchanged is not None:
            return unchanged
        shown = {**found.answer.more, "content": found.answer.content, "command": found.answer.command}
        response = render(request, template, shown, gathered_at=found.at, lasts=lasts if shared else None)
        return _stamped(response, found, request, "page")

    async def as_json(request: Request) -> Response:
        found = await run_in_threadpool(gathered, request)
        unchanged = _unchanged(request, found, "json")
        if unchanged is not None:
            return unchanged
        return _stamped(json_response(found.answer.content), found, request, "json")

    # The address with `.json` comes first: a path's last part would take it for a name.
    json_path = "/index.json" if path == "/" else f"{path}.json"
    return [Route(json_path, as_json), Route(path, as_page)]


def json_response(content: object, status: int = 200) -> Response:
    """Return what a command prints by `--format json`."""
    return Response(encode(content) + b"\n", status, media_type="application/json")


def _etag(request: Request, found: Gathered, form: str) -> str | None:
    if not found.stamp:
        return None
    person: Person = request.state.person
    part = "fragment" if FRAGMENT in request.headers else form
    return f'W/"{request.app.state.started}-{found.stamp}-{part}-{person.role}"'


def _unchanged(request: Request, found: Gathered, form: str) -> Response | None:
    etag = _etag(request, found, form)
    if etag is None or etag not in request.headers.get("if-none-match", ""):
        return None
    return _stamped(Response(status_code=304), found, request, form)


def _stamped(response: Response, found: Gathered, request: Request, form: str) -> Response:
    etag = _etag(request, found, form)
    if etag is not None:
        response.headers["ETag"] = etag
    response.headers["Sealbook-Gathered"] = found.at.isoformat()
    response.headers["Vary"] = f"{FRAGMENT}, Cookie, Authorization"
    # Kept by the browser alone, and asked for again each time.
    response.headers["Cache-Control"] = "private, no-cache"
    return response
