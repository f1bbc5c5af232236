"""Templates: everything in them that comes from data is escaped, and nothing is left undefined."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from sealbook.clock import utc_now
from sealbook.console.navigation import NAVIGATION
from sealbook.model import PartitionKey
from sealbook.model.spans import duration_text
from sealbook.model.words import counted

FRAGMENT = "Sealbook-Fragment"
"""The header by which a page asks for what is in it alone, to put it in the place of what it shows."""


def render(
    request: Request,
    template: str,
    shown: Mapping[str, Any],
    *,
    status: int = 200,
    gathered_at: datetime | None = None,
    lasts: int | None = None,
) -> Response:
    """Return a page: a whole one, or only what is in it, for a page that is open and asks for it again.

    The page says that its data is of `gathered_at`, and asks for it again after so many seconds (`lasts`),
    or when the ledger moves.
    """
    is_fragment = FRAGMENT in request.headers
    text = (
        environment()
        .get_template(template)
        .render(
            **shown,
            layout="fragment.html" if is_fragment else "base.html",
            request=request,
            person=getattr(request.state, "person", None),
            read_only=request.app.state.console.read_only,
            navigation=NAVIGATION,
            gathered_at=gathered_at or utc_now(),
            lasts=lasts,
            version=version("sealbook"),
        )
    )
    return HTMLResponse(text, status)


@cache
def environment() -> Environment:
    """Return the environment of all templates."""
    made = Environment(
        loader=PackageLoader("sealbook.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        time=shown_time,
        duration=shown_duration,
        number=shown_number,
        key_path=key_path,
        run_path=run_path,
        looks=looks,
    )
    made.globals.update(address=address, static=static, counted=counted)
    return made


def address(request: Request, **changed: object) -> str:
    """Return the address of a page with some of its filters changed; None takes one out."""
    given = [(name, value) for name, value in request.query_params.multi_items() if name not in changed]
    given += [(name, str(value)) for name, value in changed.items() if value is not None]
    return f"{request.url.path}?{urlencode(given)}" if given else request.url.path


@cache
def static(name: str) -> str:
    """Return the address of a file that goes with the pages; it changes when the file does."""
    content = files("sealbook.console").joinpath("static", name).read_bytes()
    return f"/static/{name}?v={sha256(content).hexdigest()[:12]}"


def key_path(key: PartitionKey | str) -> str:
    """Return the address of a partition's page."""
    return f"/partitions/{key}"


def run_path(run_id: str) -> str:
    """Return the address of a run's page; other engines name theirs as they like."""
    return f"/runs/{quote(run_id, safe='')}"


_LOOKS = {
    "good": ("COMPLETED", "done", "held"),
    "bad": ("FAILED", "CANCELLED", "cancelled", "ran out", "withdrawn", "terminal", "PROJECTOR_LAG_HIGH"),
    "warn": ("PAUSED", "paused", "late", "parked", "quota", "rollback", "mark"),
    "info": ("RUNNING", "open"),
}


def looks(word: str) -> str:
    """Return the class by which a word is coloured; none where it says nothing of good and bad."""
    return next((kind for kind, words in _LOOKS.items() if word in words), "")


def shown_time(value: datetime | str | None) -> str:
    """Return a time in UTC to the second; nothing for none."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return "" if value is None else f"{value:%Y-%m-%d %H:%M:%S}"


def shown_number(value: float | None) -> str:
    """Return a number with separators; nothing for none."""
    return "" if value is None else f"{value:,}"


def shown_duration(value: timedelta | float | None) -> str:
    """Return how long something took; nothing for none."""
    if value is None:
        return ""
    return duration_text(value.total_seconds() if isinstance(value, timedelta) else value)
