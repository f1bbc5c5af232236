"""Clean-up: removes artifacts that nothing needs, and what crashed loads left behind (R-WH-7).

The ledger decides what may go, and is told before a file is deleted and after; so a load at the same time
never publishes what is being removed. Only files of the copy that was condemned are deleted, and of those
before it: a load that stages the artifact again writes the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import TypeVar

from sealbook.errors import InvalidInput
from sealbook.ledger.pointers import Pointers
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import Artifact, Condemned, StoredArtifact, is_unnamed
from sealbook.model.selection import Selection
from sealbook.warehouse.layout import DRAFTS, location_of, parse_location, parse_part, part_paths
from sealbook.warehouse.store import ArtifactStore

T = TypeVar("T")
Sizes = Mapping[str, int]
"""The bytes of files, by their paths."""

ABANDONED_AFTER = timedelta(hours=1)
"""How long a file may take from being begun to being whole."""

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Removed:
    """Files of an artifact that were removed, or would be; `orphan` if no load ever published them."""

    key: PartitionKey
    run_id: RunId
    schema_version: str
    location: str
    files: int
    bytes: int
    orphan: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """Files of an artifact that may go; those beside the files of a `kept` one, whatever the ledger says."""

    artifact: Artifact
    sizes: Sizes = field(repr=False)
    orphan: bool
    kept: bool = False

    @property
    def removed(self) -> Removed:
        return Removed(
            self.artifact.key,
            self.artifact.run_id,
            self.artifact.schema_version,
            location_of(self.artifact),
            len(self.sizes),
            sum(self.sizes.values()),
            self.orphan,
        )


class Cleanup:
    """Finds and removes what is not needed. `retain` is how long what was published is kept after that."""

    def __init__(self, pointers: Pointers, artifacts: ArtifactStore, retain: timedelta) -> None:
        self._pointers = pointers
        self._artifacts = artifacts
        self._retain = retain

    def plan(self) -> Iterator[Removed]:
        """Yield what a removal would remove now."""
        return (found.removed for found in self._found())

    def remove(self) -> Iterator[Removed]:
        """Remove what is not needed, and yield what is gone. A kill leaves the rest to the next clean-up."""
        self._artifacts.delete(self._artifacts.abandoned_drafts(self._pointers.time() - ABANDONED_AFTER))
        for batch in _batched(self._found(), _BATCH):
            leftovers = [found for found in batch if found.kept]
            for found in leftovers:
                self._artifacts.delete(found.sizes)
            asked = {found.artifact: found for found in batch if not found.kept}
            # Asked again, now that it counts: a load may have come to need one since.
            condemned = self._pointers.condemn(asked, self._retain)
            for each in condemned:
                self._artifacts.delete(self._files_of(each))
            self._pointers.forget(condemned)
            yield from (found.removed for found in leftovers)
            yield from (asked[each.artifact].removed for each in condemned)

    def _files_of(self, condemned: Condemned) -> list[str]:
        """List the files of a condemned copy, and of those before it."""
        sizes = self._artifacts.sizes(location_of(condemned.artifact))
        named = ((path, parse_part(path)) for path in sizes)
        return [path for path, part in named if part is not None and part.copy <= condemned.copy]

    def _found(self) -> Iterator[_Found]:
        for artifact in self._pointers.removable(self._retain):
            yield _Found(artifact, self._artifacts.sizes(location_of(artifact)), orphan=False)
        for batch in _batched(self._unpublished(), _BATCH):
            unneeded = set(
                self._pointers.unneeded([each.artifact for each in batch if not each.kept], self._retain)
            )
            yield from (each for each in batch if each.kept or each.artifact in unneeded)

    def _unpublished(self) -> Iterator[_Found]:
        """Yield the files in the storage that the ledger knows no load of."""
        for table in self._tables():
            found = _parts_below(self._artifacts.sizes(table))
            if not found:
                continue  # nor need its name be one that the ledger could know
            source, query_name = table.split("/")
            for stored in self._pointers.stored_artifacts(Selection(source=source, queries=query_name)):
                leftovers = _leftovers(stored, found.pop(stored.artifact, {}))
                if leftovers:
                    yield _Found(stored.artifact, leftovers, orphan=True, kept=True)
            for artifact, sizes in found.items():
                yield _Found(artifact, sizes, orphan=True)

    def _tables(self) -> Iterator[str]:
        """Yield the directory of each (source, query_name)."""
        for source in self._artifacts.directories():
            if source != DRAFTS:
                yield from self._artifacts.directories(source)


def _parts_below(sizes: Sizes) -> dict[Artifact, dict[str, int]]:
    """Return the part files of each artifact; what lies elsewhere is not ours, and left alone."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for path, size in sizes.items():
        if parse_part(path) is not None:
            found[path.rpartition("/")[0]][path] = size
    return dict(_identified(found))


def _identified(found: Mapping[str, T]) -> Iterator[tuple[Artifact, T]]:
    for location, files in found.items():
        try:
            yield parse_location(location), files
        except InvalidInput:
            continue


def _leftovers(stored: StoredArtifact, sizes: Sizes) -> dict[str, int]:
    """Return the files beside those of a stored artifact that no load can come to publish.

    They are of stagers whose bytes were others, which its load record refuses for ever, or of earlier copies.
    A copy that is written anew in place of one without digests in its names may be about to be named.
    """
    expected, unnamed = set(part_paths(stored)), is_unnamed(stored.format, stored.copy)

    def may_be_named(path: str) -> bool:
        part = parse_part(path)
        return (
            unnamed
            and part is not None
            and part.copy > stored.copy
            and (stored.parts > 1 or part.digest == stored.digest)
        )

    return {path: size for path, size in sizes.items() if path not in expected and not may_be_named(path)}


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
