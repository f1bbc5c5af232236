"""`/healthz` and `/metrics`, for whoever supervises the console."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sealbook.console.console import Console
from sealbook.errors import SealbookError


async def _healthz(request: Request) -> Response:
    """Say whether the ledger answers; nothing of what is in it."""
    console: Console = request.app.state.console
    try:
        await run_in_threadpool(console.positions.now)
    except SealbookError:
        return PlainTextResponse("the ledger does not answer\n", 503)
    return PlainTextResponse("ok\n")


routes = [Route("/healthz", _healthz)]
