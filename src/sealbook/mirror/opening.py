"""From settings to a mirror: each of its queries, on a table of its format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sealbook.config import MirrorFormat, MirrorSettings, Settings, find_query
from sealbook.errors import SealbookError
from sealbook.mirror.mirroring import Mirrored, MirrorStanding, QueryMirror, root_of
from sealbook.mirror.table import MirrorTable
from sealbook.model.contract import Query
from sealbook.warehouse.part_files import PartFiles
from sealbook.warehouse.store import ArtifactStore

if TYPE_CHECKING:
    from sealbook.ledger import LedgerReader
    from sealbook.ledger.pointers.consumers import ConsumerWriter


@dataclass(frozen=True, slots=True)
class Mirror:
    """A configured mirror; its queries are apart from each other, each with a position of its own."""

    settings: MirrorSettings
    queries: tuple[QueryMirror, ...]

    def run(self, *, rebuild: bool = False, check: bool = False) -> list[Mirrored]:
        """Bring every query up to what is published now, by one commit each.

        `rebuild` says all of it anew; `check` compares every file with what is published. A query that fails
        is told among the others.
        """
        return [_attempt(each, rebuild=rebuild, check=check) for each in self.queries]

    def standings(self) -> list[MirrorStanding]:
        """Say how far each query has come, by its own latest commit."""
        return [each.standing() for each in self.queries]


def _attempt(query: QueryMirror, *, rebuild: bool, check: bool) -> Mirrored:
    try:
        return query.check() if check and not rebuild else query.run(rebuild=rebuild)
    except SealbookError as error:
        place = (query.mirror, query.query.source, query.query.name)
        return Mirrored(*place, token=None, failed=f"{error} {error.remedy or ''}".rstrip())


def open_mirror(
    settings: Settings, mirror: MirrorSettings, ledger: LedgerReader, keeper: ConsumerWriter
) -> Mirror:
    """Return a mirror; MissingExtra if the package for its format is not installed."""
    warehouse, copies = PartFiles(settings.warehouse), ArtifactStore.open(mirror.location)
    make = _tables(settings, mirror, warehouse, copies)
    found = []
    for source, name in mirror.queries:
        query = find_query(settings.sources, name, source)
        table = make(query)
        found.append(QueryMirror(mirror.name, query, table, ledger, keeper, warehouse, copies))
    return Mirror(mirror, tuple(found))


def _tables(
    settings: Settings, mirror: MirrorSettings, warehouse: PartFiles, copies: ArtifactStore
) -> Callable[[Query], MirrorTable]:
    """Return what makes the tables of a mirror's format."""
    if mirror.format is MirrorFormat.DELTA:
        from sealbook.mirror.delta import DeltaMirror

        return lambda query: DeltaMirror(mirror.location, root_of(query), warehouse)
    from sealbook.ledger.db.urls import parse_url
    from sealbook.mirror.iceberg import IcebergMirror, open_catalog

    ledger = parse_url(settings.ledger).render_as_string(hide_password=False)
    catalog = open_catalog(mirror.name, mirror.catalog, ledger)
    return lambda query: IcebergMirror(catalog, (query.source, query.name), copies, root_of(query), warehouse)
