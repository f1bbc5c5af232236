"""How long work says how far it is."""

from __future__ import annotations

from typing import Protocol


class OnProgress(Protocol):
    """Hears of partitions whose work is done."""

    def __call__(self, partitions: int, *, rows: int, size: int) -> None:
        """Count partitions, with the rows and bytes of them."""


def no_progress(partitions: int, *, rows: int, size: int) -> None:
    """Show no progress."""
