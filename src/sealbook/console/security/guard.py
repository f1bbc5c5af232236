"""The way in: every request passes here first, and is refused here or has a person.

In this order: the Host must be one of ours, whoever asks; what changes something must come from one of our
own pages; then somebody must be known by a cookie, a token or a named proxy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sealbook.console.security.origins import is_from_elsewhere
from sealbook.console.security.people import Person

_OPEN = ("/healthz", "/login", "/static/")
"""What is answered whoever asks: nothing of the book is in it."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Identity(Protocol):
    """A way to know who asks."""

    def person(self, request: Request) -> Person | None:
        """Return who asks; None if this way does not tell."""
        ...

    def welcome(self, request: Request) -> Response | None:
        """Return what lets them in from now on, if this request is to do that: it sets a cookie."""
        ...

    def sign_in(self, secret: str) -> tuple[str, str] | None:
        """Return the name and value of the cookie for who knows a secret; None if it is of nobody."""
        ...


@dataclass(frozen=True, slots=True)
class Guard:
    """Under which hosts the console may be asked for, and how it is known who asks."""

    hosts: frozenset[str]
    identities: Sequence[Identity] = ()
    is_https: bool = False
    """Whether people come by https: then cookies go by nothing else."""

    def allows_host(self, request: Request) -> bool:
        """Tell whether a request is meant for us: a page elsewhere may have had its name lead here."""
        given = request.headers.getlist("host")
        return len(given) == 1 and given[0].lower() in self.hosts

    def person(self, request: Request) -> Person | None:
        """Return who asks, by the first way that tells."""
        found = (each.person(request) for each in self.identities)
        return next((person for person in found if person is not None), None)

    def welcome(self, request: Request) -> Response | None:
        """Return what lets somebody in from now on, if this request is to do that."""
        found = (each.welcome(request) for each in self.identities)
        return next((response for response in found if response is not None), None)

    def sign_in(self, secret: str, response: Response) -> bool:
        """Give whoever knows a secret their cookie; tell whether anybody does."""
        cookies = (each.sign_in(secret) for each in self.identities)
        cookie = next((each for each in cookies if each is not None), None)
        if cookie is not None:
            name, value = cookie
            response.set_cookie(name, value, httponly=True, samesite="lax", secure=self.is_https)
        return cookie is not None


class GuardMiddleware:
    """Refuses requests that the guard does not let in, and says on every answer what a browser may do."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks anything else
        request = Request(scope, receive)
        refused = self._refusal(request)
        await (refused or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        if not self._guard.allows_host(request):
            return PlainTextResponse("this console is not asked for by that name\n", 421)
        if is_from_elsewhere(request):
            return PlainTextResponse("only pages of this console may do this\n", 403)
        person = self._guard.person(request)
        request.state.person = person
        if person is not None:
            return self._guard.welcome(request)
        welcome = self._guard.welcome(request)
        if welcome is not None:
            return welcome
        if request.url.path.startswith(_OPEN):
            return None
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/login", 303)
        return PlainTextResponse("who are you? give the token\n", 401, headers={"WWW-Authenticate": "Bearer"})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending
