"""The section `alerts` of the settings: who is told what somebody should look at."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sealbook.config.documents import Place
from sealbook.config.settings import AlertSettings
from sealbook.config.urls import check_http


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
    check_http(section.url, section.headers, place)
    return AlertSettings(section.command, section.url, section.headers)
