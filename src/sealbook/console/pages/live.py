"""`/live`: the stream of what has moved."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sealbook.console.console import Console


async def _live(request: Request) -> Response:
    """Tell a page what moves; `Last-Event-ID` is what it heard last."""
    console: Console = request.app.state.console
    heard = request.headers.get("last-event-id") or request.query_params.get("after")
    # A proxy that gathers answers before it hands them on would hold back the news.
    return StreamingResponse(
        console.live.stream(heard),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
    )


routes = [Route("/live", _live)]
