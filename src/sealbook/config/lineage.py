"""The section `lineage` of the settings: where OpenLineage events go."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec

from sealbook.config.documents import Place
from sealbook.config.settings import LineageSettings
from sealbook.config.urls import check_http
from sealbook.errors import MissingExtra


class LineageSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`lineage`."""

    path: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    namespace: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] = "sealbook"


def lineage_settings(section: LineageSection | None, root: Path, place: Place) -> LineageSettings | None:
    """Return where events go, to a file or an address; None if nowhere."""
    if section is None:
        return None
    if (section.path is None) is (section.url is None):
        raise place.error("expected a path or a url", remedy="Give one of the two.")
    if section.url is None and section.headers:
        raise (place / "headers").error("a file gets no headers", remedy="Take them out, or give a url.")
    if section.path is not None and ("://" in section.path or "\0" in section.path):
        raise (place / "path").error("expected the path of a file on this machine")
    check_http(section.url, section.headers, place)
    path = None if section.path is None else root / section.path
    return LineageSettings(path, section.url, section.headers, section.namespace)


def check_installed() -> None:
    """Refuse to go on without the client of OpenLineage, by which events are made."""
    if find_spec("openlineage") is None:
        raise MissingExtra(
            "lineage needs the OpenLineage client, which is not installed",
            remedy="pip install 'sealbook[lineage]'",
        )
