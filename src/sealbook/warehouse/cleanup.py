"""Clean-up: removes artifacts that nothing needs, and what crashed loads left behind (R-WH-7).

The ledger decides what may go, and is told before a file is deleted and after; so a load at the same time
never publishes what is being removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TypeVar

from sealbook.clock import utc_now
from sealbook.errors import InvalidInput
from sealbook.ledger.pointers import Pointers
from sealbook.ledger.pointers.removals import ABANDONED_AFTER
from sealbook.model import PartitionKey, RunId
from sealbook.model.publication import Artifact
from sealbook.model.selection import Selection
from sealbook.warehouse.layout import DRAFTS, location_of, parse_location
from sealbook.warehouse.store import ArtifactStore

T = TypeVar("T")

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Removed:
    """An artifact that was removed, or would be; `orphan` if no load ever published it."""

    key: PartitionKey
    run_id: RunId
    schema_version: str
    location: str
    files: int
    bytes: int
    orphan: bool


class Cleanup:
    """Finds and removes what is not needed. `retain` is how long what was published is kept after that."""

    def __init__(self, pointers: Pointers, artifacts: ArtifactStore, retain: timedelta) -> None:
        self._pointers = pointers
        self._artifacts = artifacts
        self._retain = retain

    def plan(self) -> Iterator[Removed]:
        """Yield what a removal would remove now."""
        for artifact in self._pointers.removable(self._retain):
            yield self._found(artifact, is_orphan=False)
        for batch in _batched(self._orphans(), _BATCH):
            unneeded = set(self._pointers.unneeded(batch, self._retain))
            yield from (self._found(artifact, is_orphan=True) for artifact in batch if artifact in unneeded)

    def remove(self) -> Iterator[Removed]:
        """Remove what is not needed, and yield what is gone. A kill leaves the rest to the next clean-up."""
        self._artifacts.delete(self._artifacts.abandoned_drafts(utc_now() - ABANDONED_AFTER))
        for batch in _batched(self.plan(), _BATCH):
            found = {Artifact(each.key, each.run_id, each.schema_version): each for each in batch}
            # Asked again, now that it counts: a load may have come to need one since.
            condemned = self._pointers.condemn(found, self._retain)
            for artifact in condemned:
                self._artifacts.delete(self._artifacts.sizes(location_of(artifact)))
            self._pointers.forget(condemned)
            yield from (found[artifact] for artifact in condemned)

    def _found(self, artifact: Artifact, *, is_orphan: bool) -> Removed:
        location = location_of(artifact)
        sizes = self._artifacts.sizes(location)
        return Removed(
            artifact.key,
            artifact.run_id,
            artifact.schema_version,
            location,
            files=len(sizes),
            bytes=sum(sizes.values()),
            orphan=is_orphan,
        )

    def _orphans(self) -> Iterator[Artifact]:
        """Yield the artifacts in the storage that the ledger knows no load of."""
        for table in self._tables():
            found = dict(_artifacts_below(self._artifacts.sizes(table)))
            if not found:
                continue  # nor need its name be one that the ledger could know
            source, query_name = table.split("/")
            for record in self._pointers.load_records(Selection(source=source, queries=query_name)):
                found.pop(record.location, None)
            yield from found.values()

    def _tables(self) -> Iterator[str]:
        """Yield the directory of each (source, query_name)."""
        for source in self._artifacts.directories():
            if source != DRAFTS:
                yield from self._artifacts.directories(source)


def _artifacts_below(paths: Iterable[str]) -> Iterator[tuple[str, Artifact]]:
    """Yield location and artifact of each directory; what lies elsewhere is not ours, and left alone."""
    for location in dict.fromkeys(path.rpartition("/")[0] for path in paths):
        try:
            yield location, parse_location(location)
        except InvalidInput:
            continue


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
