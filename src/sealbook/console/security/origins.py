"""Requests that change something, sent by a page of somebody else: no browser may bring us those."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

_SAFE = ("GET", "HEAD", "OPTIONS")


def is_from_elsewhere(request: Request) -> bool:
    """Tell whether an unsafe request does not come from one of our own pages, or from no page at all.

    Browsers say so by `Sec-Fetch-Site`; those that do not, by `Origin`. Without either nothing is known, and
    it is refused, unless a token comes with it, which no page of somebody else has.
    """
    if request.method in _SAFE:
        return False
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc.lower() != request.headers["host"].lower()
    return not request.headers.get("authorization", "").lower().startswith("bearer ")
