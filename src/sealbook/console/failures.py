"""What is answered when something fails: the error's own words and its way out, as a page or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sealbook.console.page import json_response
from sealbook.console.rendering import render
from sealbook.errors import (
    ConfigError,
    Conflict,
    Drifted,
    Forbidden,
    IllegalMove,
    InvalidInput,
    NotFound,
    SealbookError,
    Transient,
)

_STATUSES: tuple[tuple[type[SealbookError], int], ...] = (
    (InvalidInput, 400),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    (IllegalMove, 409),
    (ConfigError, 400),
    (Transient, 503),
)
_TITLES = {
    400: "This cannot be asked",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "Not done this way",
    409: "The world has moved",
    503: "Not now",
}


def failure(request: Request, status: int, message: str, remedy: str | None, **further: object) -> Response:
    """Return an error as what was asked for: a page, or JSON beside one."""
    if wants_json(request):
        return json_response({"error": message, "remedy": remedy, **further}, status)
    shown = {"title": _TITLES.get(status, "It failed"), "message": message, "remedy": remedy, **further}
    return render(request, "failure.html", {"differences": [], **shown}, status=status)


def wants_json(request: Request) -> bool:
    """Tell a program from a browser."""
    accepts = request.headers.get("accept", "")
    return request.url.path.endswith(".json") or ("json" in accepts and "html" not in accepts)


async def _sealbook_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, SealbookError)  # it is registered for these
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    differences = {"differences": list(error.differences)} if isinstance(error, Drifted) else {}
    return failure(request, status, str(error), error.remedy, **differences)


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # it is registered for these
    message = "there is no such page" if error.status_code == 404 else error.detail
    response = failure(request, error.status_code, message, None)
    response.headers.update(error.headers or {})
    return response


HANDLERS: Mapping[Any, Callable[[Request, Exception], Any]] = {
    SealbookError: _sealbook_error,
    HTTPException: _http_exception,
}
"""By the class of what was raised. Anything else is a fault of ours: it is logged, and answered as 500."""
