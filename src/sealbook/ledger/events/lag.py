"""How far a projection is behind the log, and what follows from it (R-EVT-9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sealbook.ledger.events.port import Backlog

PROJECTOR_LAG_HIGH = "PROJECTOR_LAG_HIGH"

ALERT_SECONDS = 5.0
RESYNC_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Lag:
    """How many events a projection has yet to take, and how long the oldest of them has waited."""

    events: int
    seconds: float

    @classmethod
    def of(cls, backlog: Backlog, now: datetime) -> Lag:
        """Measure a backlog at a time."""
        if backlog.oldest is None:
            return cls(backlog.events, 0.0)
        # The clock that wrote the event may be ahead of ours.
        return cls(backlog.events, max(0.0, (now - backlog.oldest).total_seconds()))

    @property
    def alert(self) -> str | None:
        """The name of the alert that the lag calls for, if any."""
        return PROJECTOR_LAG_HIGH if self.seconds > ALERT_SECONDS else None

    @property
    def needs_resync(self) -> bool:
        """Whether runs are to be read again rather than followed."""
        return self.seconds > RESYNC_SECONDS
