"""The section `mirrors` of the settings: what is kept in other formats, where, and by which catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Annotated

import msgspec

from sealbook.config.documents import Place, convert
from sealbook.config.settings import MirrorFormat, MirrorSettings, SourceSettings, find_query
from sealbook.config.urls import storage_url
from sealbook.errors import SealbookError
from sealbook.model.keys import check_name
from sealbook.model.published_changes import check_consumer_name
from sealbook.model.universe import AssetName


class MirrorSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`mirrors.NAME`."""

    format: MirrorFormat
    location: str
    queries: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    catalog: dict[str, str] | None = None


def mirror_settings(
    documents: Mapping[str, object],
    sources: Mapping[str, SourceSettings],
    root: Path,
    place: Place,
    raw: str,
    warehouse: str,
) -> dict[str, MirrorSettings]:
    """Return the mirrors; none may be mixed up with another, with raw partitions or with artifacts."""
    taken = {"raw": raw, "warehouse": warehouse}
    found = {
        name: _mirror(name, document, sources, root, place / name, taken)
        for name, document in documents.items()
    }
    for one, other in combinations(found.values(), 2):
        if one.location == other.location:
            raise (place / other.name / "location").error(
                f"mirror {one.name} is there", remedy="Give each mirror a folder or prefix of its own."
            )
    return found


def _mirror(
    name: str,
    document: object,
    sources: Mapping[str, SourceSettings],
    root: Path,
    place: Place,
    taken: Mapping[str, str],
) -> MirrorSettings:
    section = convert(document, MirrorSection, place)
    with place.named():
        check_name("mirror", name)
        check_consumer_name(f"mirror.{name}")
    location = storage_url(section.location, root, place / "location")
    inside = section.format is MirrorFormat.DELTA and location == taken["warehouse"]
    for what, other in taken.items():
        if not inside and (f"{location}/".startswith(f"{other}/") or f"{other}/".startswith(f"{location}/")):
            raise (place / "location").error(
                f"it is in the same place as {what}",
                remedy="Give it a folder or prefix of its own."
                " A mirror in Delta may also be exactly where the warehouse is.",
            )
    if section.format is not MirrorFormat.ICEBERG and section.catalog is not None:
        raise (place / "catalog").error("only Iceberg has a catalogue", remedy="Take it out.")
    return MirrorSettings(
        name,
        section.format,
        location,
        tuple(dict.fromkeys(_queries(section, sources, place / "queries"))),
        section.catalog or {},
    )


def _queries(
    section: MirrorSection, sources: Mapping[str, SourceSettings], place: Place
) -> Iterator[AssetName]:
    """Yield the queries that are named, or all."""
    if section.queries is None:
        for source in sources.values():
            yield from (AssetName(source.name, name) for name in source.queries)
        return
    for index, text in enumerate(section.queries):
        of_source, _, name = text.rpartition("/")
        try:
            query = find_query(sources, name, of_source or None)
        except SealbookError as error:
            raise (place / index).error(
                str(error), remedy="Name a query that is configured, or source/query where several have it."
            ) from error
        yield AssetName(query.source, query.name)
