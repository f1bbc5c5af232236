"""Runs whose payload is that of the published run: published in its files, without staging anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice

from sealbook.errors import SealbookError
from sealbook.ledger.pointers import Pointers
from sealbook.load.publishing import publish
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import Replacement
from sealbook.model.claims import Fences
from sealbook.raw import RawReader
from sealbook.warehouse.checking import check_artifact
from sealbook.warehouse.part_files import PartFiles

_BATCH = 5_000


@dataclass(frozen=True)
class Sharing:
    """Finds what need not be staged, and publishes it.

    The seals of both runs say whether their payloads are the same; whoever judged them held each against its
    seal. Files are shared only if they are there, as far as their footers tell: else they are staged, which
    says what is wrong.
    """

    pointers: Pointers
    raw: RawReader
    files: PartFiles
    age: Callable[[PartitionKey, RunId], timedelta]
    under: Fences | None = None

    def results(self, replacements: Iterable[Replacement]) -> Iterator[list[Loaded]]:
        """Publish those that share files, and yield what came of them once the ledger has it."""
        maybe_same = (each for each in replacements if each.maybe_same)
        while batch := list(islice(maybe_same, _BATCH)):
            compared = zip(batch, self.raw.each(self._is_same, batch), strict=True)
            same = [each.shared(self.age(each.key, each.run_id)) for each, is_same in compared if is_same]
            if same:
                yield [_shared(each) for each in publish(self.pointers, same, self.under)]

    def _is_same(self, each: Replacement) -> bool:
        """Say whether a run has the payload of the published one, whose files are there."""
        try:
            seals = [self.raw.metadata(each.key, run) for run in (each.run_id, each.published.record.run_id)]
            new, old = ((seal.payload_sha256, seal.payload_bytes, seal.schema_version) for seal in seals)
            if new != old:
                return False
            check_artifact(self.files, each.published.published)
        except SealbookError:
            return False
        return True


def _shared(result: Loaded) -> Loaded:
    if result.ending is not LoadEnding.REPLACED:
        return result
    return replace(result, ending=LoadEnding.IDENTICAL, record_count=0, bytes=0)
