"""On one's own machine: a token in the printed address, swapped for a cookie at once."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sealbook.console.security.bearer import bearer_of
from sealbook.console.security.people import Person

PARAMETER = "token"


@dataclass(frozen=True, slots=True)
class LocalToken:
    """The identity of whoever started the console: they alone were shown the token.

    The cookie's name has the port in it: browsers do not tell two consoles on one machine apart by it.
    """

    owner: Person
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie_name(self) -> str:
        """The name of the cookie."""
        return f"sealbook_{self.port}"

    def person(self, request: Request) -> Person | None:
        """Return the owner, if the request has the cookie or the token."""
        known = _same(request.cookies.get(self.cookie_name), self._cookie)
        return self.owner if known or _same(bearer_of(request), self.token) else None

    def welcome(self, request: Request) -> Response | None:
        """Swap the token of an address for a cookie, and take it out of the address."""
        if request.method != "GET" or PARAMETER not in request.query_params:
            return None
        if not _same(request.query_params[PARAMETER], self.token):
            return None
        kept = [pair for pair in request.query_params.multi_items() if pair[0] != PARAMETER]
        # A path of two slashes would be another host's.
        path = "/" + request.url.path.lstrip("/\\")
        response = RedirectResponse(f"{path}?{urlencode(kept)}" if kept else path, 303)
        response.set_cookie(self.cookie_name, self._cookie, httponly=True, samesite="lax", path="/")
        return response

    def sign_in(self, secret: str) -> tuple[str, str] | None:
        """Return the name and value of the cookie for the token."""
        return (self.cookie_name, self._cookie) if _same(secret, self.token) else None


def _same(given: str | None, wanted: str) -> bool:
    return given is not None and compare_digest(given.encode(), wanted.encode())
