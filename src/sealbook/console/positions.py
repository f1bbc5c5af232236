"""How far the ledger is: read once for all who ask within a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sealbook.ledger.position import Position

FRESH_SECONDS = 1.0
"""How long a position that was read is good for: however many pages ask, the ledger is asked once."""


class Positions:
    """The position of the ledger, by a reading that all who ask share."""

    def __init__(self, read: Callable[[], Position], fresh_seconds: float = FRESH_SECONDS) -> None:
        self._read = read
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._position = Position(0, 0, 0, 0, 0)
        self._read_at: float | None = None

    def now(self) -> Position:
        """Return the position as of at most a second ago."""
        with self._lock:
            if self._read_at is None or time.monotonic() - self._read_at >= self._fresh_seconds:
                self._position = self._read()
                self._read_at = time.monotonic()
            return self._position

    def forget(self) -> None:
        """Have the ledger asked again by whoever asks next: it was just changed from here."""
        with self._lock:
            self._read_at = None
