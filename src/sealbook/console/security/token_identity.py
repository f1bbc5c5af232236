"""People and programs that are known by a token of the book: in a header, or swapped for a cookie."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from sealbook.console.security.bearer import bearer_of
from sealbook.console.security.people import Person
from sealbook.console.security.tokens import Token, TokenFile

_COOKIE = "sealbook_token"


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Who has a token; what is revoked or has run out ends at once, cookie and all.

    The cookie names the token and is signed with a key of this process: nothing about it is kept.
    """

    tokens: TokenFile
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def person(self, request: Request) -> Person | None:
        """Return whose token or cookie a request has."""
        secret = bearer_of(request)
        token = (
            self._of_cookie(request.cookies.get(_COOKIE, "")) if secret is None else self.tokens.find(secret)
        )
        return None if token is None else token.person

    def welcome(self, request: Request) -> Response | None:
        """Let nobody in by an address: tokens that last do not belong into one."""
        del request
        return None

    def sign_in(self, secret: str) -> tuple[str, str] | None:
        """Return the name and value of the cookie for a secret; None if it is of no token."""
        token = self.tokens.find(secret)
        return None if token is None else (_COOKIE, f"{token.id}.{self._signature(token)}")

    def _of_cookie(self, value: str) -> Token | None:
        token_id, _, signature = value.partition(".")
        token = self.tokens.get(token_id)
        if token is None or not hmac.compare_digest(signature.encode(), self._signature(token).encode()):
            return None
        return token

    def _signature(self, token: Token) -> str:
        return hmac.new(self._key, f"{token.id}.{token.digest}".encode(), "sha256").hexdigest()
