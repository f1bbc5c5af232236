"""`/login`: a token is swapped for a cookie, and `/logout` lets go of it."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sealbook.console.rendering import render
from sealbook.console.security.guard import Guard

_LONGEST_FORM = 4_096


async def _login(request: Request) -> Response:
    if request.method != "POST":
        return render(request, "login.html", {"refused": False})
    guard: Guard = request.app.state.guard
    response = RedirectResponse("/", 303)
    if guard.sign_in(await _given_token(request), response):
        return response
    return render(request, "login.html", {"refused": True}, status=403)


async def _given_token(request: Request) -> str:
    """Return the token of the form; nobody is known yet, so that no more is read than a token can take."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST_FORM:
            return ""
    return parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()


async def _logout(request: Request) -> Response:
    response = RedirectResponse("/login", 303)
    for name in request.cookies:
        if name.startswith("sealbook_"):
            response.delete_cookie(name, httponly=True, samesite="lax")
    return response


routes = [Route("/login", _login, methods=["GET", "POST"]), Route("/logout", _logout, methods=["POST"])]
