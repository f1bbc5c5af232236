"""Tokens that come in the header of a request."""

from __future__ import annotations

from starlette.requests import Request


def bearer_of(request: Request) -> str | None:
    """Return the token of `Authorization: Bearer …`; None if there is none."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if kind.lower() == "bearer" else None
