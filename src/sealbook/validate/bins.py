"""How runs are divided among tasks: bins that keep all cores busy, and slices of large payloads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sealbook.rows.blocks import BLOCK_BYTES
from sealbook.rows.units import Digest, Slice, Unit
from sealbook.validate.plan import Candidate

SLICED_ABOVE = 64 * 1024 * 1024
SLICE_BYTES = 16 * 1024 * 1024
MOST_BYTES = 64 * 1024 * 1024
LEAST_BYTES = 2 * 1024 * 1024
_BINS_A_CORE = 8
_BYTES_A_FILE = 32 * 1024  # what opening a file costs, in bytes that could be read meanwhile


@dataclass(frozen=True, slots=True)
class Binning:
    """How large bins, slices and blocks are, and above which size a payload is sliced."""

    cores: int
    sliced_above: int = SLICED_ABOVE
    slice_bytes: int = SLICE_BYTES
    bin_bytes: int | None = None
    block_bytes: int = BLOCK_BYTES

    def bins(self, candidates: Sequence[tuple[int, Candidate]]) -> list[list[Unit]]:
        """Divide whole payloads, each given with its ordinal.

        Each bin gets a core's share of what is left, so that the last ones are small: then all cores end at
        about the same time, and few verdicts are left to be written when they do. None is so small that to
        start its task, which costs as much as to read a hundred files, would take long beside its work.
        """
        rest = sum(candidate.payload_bytes + _BYTES_A_FILE for _, candidate in candidates)
        least = max(rest // (self.cores * _BINS_A_CORE), LEAST_BYTES)
        bins: list[list[Unit]] = []
        room = 0
        for ordinal, candidate in candidates:
            weight = candidate.payload_bytes + _BYTES_A_FILE
            if not bins or weight > room:
                bins.append([])
                room = self.bin_bytes or min(max(rest // self.cores, least), MOST_BYTES)
            bins[-1].append(Unit(ordinal, candidate.key, candidate.run_id))
            room -= weight
            rest -= weight
        return bins

    def slices(self, candidates: Iterable[tuple[int, Candidate]]) -> list[list[Unit]]:
        """Divide large payloads: a bin for each slice, and one for each digest."""
        return [[unit] for ordinal, candidate in candidates for unit in self._slices(ordinal, candidate)]

    def _slices(self, ordinal: int, candidate: Candidate) -> Iterable[Unit]:
        key, run_id, size = candidate.key, candidate.run_id, candidate.payload_bytes
        starts = range(0, size, self.slice_bytes)
        for piece, start in enumerate(starts):
            yield Slice(ordinal, key, run_id, piece, start, min(start + self.slice_bytes, size))
        yield Digest(ordinal, key, run_id, len(starts))

    def is_sliced(self, candidate: Candidate) -> bool:
        """Say whether the payload is too large for one task."""
        return candidate.payload_bytes > self.sliced_above
