"""What a worker may ask of a source beside others: a part of its limits, and until when."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sealbook.errors import Transient


class TimeIsUp(Exception):
    """The source must not be asked any more: whoever wants to know by now has another claim."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one of several workers may ask of a source; by default all, as if it were alone."""

    part: float = 1.0
    """Its part of the source's limits of requests per second."""
    once: bool = False
    """Whether each partition is asked for once at most, for no more than that is reserved of a budget."""
    until: float | None = None
    """The moment, in seconds since 1970, at which its lease runs out: then nothing more is asked."""

    def of(self, limit: float | None) -> float | None:
        """Return the worker's part of a limit."""
        return None if limit is None else limit * self.part

    def check_first(self, attempt: int) -> None:
        """Refuse to ask in a task that is tried again: nobody knows what it had asked before it was lost."""
        if self.once and attempt:
            raise Transient("the worker that fetched it was lost; its request counts as spent")

    def check_time(self) -> None:
        """Refuse to ask once the lease has run out."""
        if self.until is not None and time.time() >= self.until:
            raise TimeIsUp


ALONE = Allowance()
NO_ALLOWANCES: Mapping[str, Allowance] = MappingProxyType({})
"""By source, where nobody asks beside us."""
