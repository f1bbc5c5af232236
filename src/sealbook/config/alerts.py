"""The section `alerts` of the settings: who is told what somebody should look at."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from sealbook.config.documents import Place
from sealbook.config.settings import AlertSettings


class AlertsSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`alerts`."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    url: str | None = None
    headers: dict[str, str] = {}


def alert_settings(section: AlertsSection | None, place: Place) -> AlertSettings | None:
    """Return who is told, by a command or at an address; None if nobody is."""
    if section is None:
        return None
    if (section.command is None) is (section.url is None):
        raise place.error("expected a command or a url", remedy="Give one of the two.")
    if section.url is None and section.headers:
        raise (place / "headers").error("a command gets no headers", remedy="Take them out, or give a url.")
    if section.url is not None:
        # What follows the host may hold a secret: it is not shown.
        parts = urlsplit(section.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise (place / "url").error("expected an http:// or https:// URL with a host")
    for name, value in section.headers.items():
        if not name.isascii() or not name.isprintable() or ":" in name or not value.isprintable():
            raise (place / "headers" / name).error("this cannot be a header")
    return AlertSettings(section.command, section.url, section.headers)
