"""The port of the run-event store: what any store offers, and what comes back from it (R-EVT-1)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from sealbook.model.events import RunEvent
from sealbook.model.run_snapshot import RunSnapshot

PAGE = 1_000
"""How many events a fetch returns at most, unless asked for more or less."""


class AppendResult(NamedTuple):
    """What became of an event: its number, and whether this call stored it.

    An `idempotent` append found the event's key stored before. `conflict` says that it was stored with
    another payload, which is event_data and partition; the stored event stands (R-EVT-4).
    """

    run_seq: int
    idempotent: bool
    persisted: bool
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """An event at its place among the events of all runs."""

    position: int
    event: RunEvent


@dataclass(frozen=True, slots=True)
class Backlog:
    """What comes after a position: how many events, when the oldest was persisted, where the last one is."""

    events: int
    oldest: datetime | None
    end: int


class RunStore(Protocol):
    """A log of run events, and the snapshots that they add up to. Every adapter is one."""

    def append_event(self, event: RunEvent) -> AppendResult:
        """Store an event once; a key that is stored already returns its number."""

    def append_events(self, events: Iterable[RunEvent]) -> list[AppendResult]:
        """Store events of one or many runs in one transaction; results come in the order given."""

    def fetch_events(self, run_id: str, after_seq: int = 0, limit: int = PAGE) -> list[RunEvent]:
        """Return the events of a run with a number above `after_seq`, in the order of their numbers."""

    def get_snapshot(self, run_id: str) -> RunSnapshot | None:
        """Return the latest snapshot of a run; None for a run without events."""

    def project_snapshot(self, run_id: str) -> RunSnapshot:
        """Replay a run's events from the first; a run without any is pending."""


class EventFeed(Protocol):
    """What a projector reads: the events of all runs in the order of their commits, and each run's log."""

    def fetch_feed(self, after: int = 0, limit: int = PAGE) -> list[FeedEvent]:
        """Return the events after a position; none that a later call would put before them (R-EVT-8)."""

    def fetch_events(self, run_id: str, after_seq: int = 0, limit: int = PAGE) -> list[RunEvent]:
        """Return the events of a run with a number above `after_seq`, in the order of their numbers."""

    def backlog(self, after: int = 0) -> Backlog:
        """Measure what comes after a position."""

    def watch(self) -> AbstractContextManager[Watch]:
        """Watch for events while the block lasts."""


class Watch(Protocol):
    """Tells a reader of a feed when to look again. The reader looks, rests, and looks again."""

    def rest(self, *, found: bool, at_most: float) -> None:
        """Return when another look may find something: at once if the last look `found` something."""
