"""Swaps of what is staged, and what came of them for each partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sealbook.errors import Conflict
from sealbook.ledger.pointers import Pointers
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model.artifacts import Artifact, Staged, SwapResult
from sealbook.model.claims import LOST, Fences
from sealbook.model.failures import ErrorClass

_ENDINGS = {
    "loaded": (LoadEnding.LOADED, None),
    "replaced": (LoadEnding.REPLACED, None),
    "unchanged": (LoadEnding.UNCHANGED, None),
    "moved": (LoadEnding.SKIPPED, "its authority moved on since the plan"),
    "removed": (
        LoadEnding.SKIPPED,
        "a clean-up took its artifact away since the plan; the next load stages it",
    ),
    "elsewhere": (
        LoadEnding.SKIPPED,
        "another load recorded other files for it since the plan; the next load goes by those",
    ),
    "lost": (LoadEnding.SKIPPED, LOST),
    "miscounted": (LoadEnding.FAILED, "its artifact has another number of records than was accepted"),
}
"""The fields of SwapResult, and what each says of a partition."""


def publish(pointers: Pointers, batch: Sequence[Staged], under: Fences | None) -> list[Loaded]:
    """Publish a batch, and say what came of each artifact."""
    try:
        return swap_results(batch, pointers.swap(batch, under))
    except Conflict as error:
        # Another load recorded other bytes since the plan: find the partition, and publish the rest.
        if len(batch) == 1:
            artifact = batch[0].artifact
            return [load_result(artifact, LoadEnding.FAILED, reason=str(error), error=ErrorClass.of(error))]
        half = len(batch) // 2
        return [*publish(pointers, batch[:half], under), *publish(pointers, batch[half:], under)]


def swap_results(batch: Iterable[Staged], swapped: SwapResult) -> list[Loaded]:
    """Say of each artifact of a batch what a swap did with it."""
    staged = {each.key: each for each in batch}
    return [
        load_result(
            staged[key].artifact,
            ending,
            record_count=staged[key].record_count,
            size=staged[key].bytes,
            reason=reason,
            error=ErrorClass.PERMANENT if ending is LoadEnding.FAILED else None,
        )
        for name, (ending, reason) in _ENDINGS.items()
        for key in getattr(swapped, name)
    ]


def load_result(
    artifact: Artifact,
    ending: LoadEnding,
    *,
    record_count: int = 0,
    size: int = 0,
    reason: str | None = None,
    error: ErrorClass | None = None,
) -> Loaded:
    """Return what came of the load of an artifact."""
    return Loaded(
        artifact.key, ending, artifact.run_id, artifact.schema_version, record_count, size, reason, error
    )
