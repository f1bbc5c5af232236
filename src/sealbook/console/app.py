"""The console as an ASGI application: pages, what guards them, and how it answers when something fails."""

from __future__ import annotations

import pkgutil
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib import import_module

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from sealbook.console import pages
from sealbook.console.console import Console
from sealbook.console.failures import HANDLERS
from sealbook.console.security.guard import Guard, GuardMiddleware


def create_app(console: Console, guard: Guard) -> Starlette:
    """Return the application that shows a console to whoever the guard lets in."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            console.close()

    app = Starlette(
        routes=[*_page_routes(), Mount("/static", _Static(packages=[("sealbook.console", "static")]))],
        middleware=[Middleware(GuardMiddleware, guard=guard)],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    app.state.console = console
    app.state.guard = guard
    app.state.started = secrets.token_urlsafe(6)
    return app


def _page_routes() -> Iterator[BaseRoute]:
    """Yield the `routes` of every module in `pages`, by name."""
    for found in sorted(pkgutil.iter_modules(pages.__path__), key=lambda each: each.name):
        yield from import_module(f"{pages.__name__}.{found.name}").routes


class _Static(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        """Let browsers keep what is asked for by its digest."""
        response = await super().get_response(path, scope)
        if "v" in Request(scope).query_params:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response
