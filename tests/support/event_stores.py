"""Run events for tests of projectors, and a store that shows them badly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sealbook.ledger.events import Backlog, FeedEvent, SqlRunStore, Watch
from sealbook.model.events import RunEvent

Hidden = Callable[[RunEvent], bool]


@dataclass
class FaultyFeed:
    """A store as its feed and its logs look while some events are not to be seen, or come out of order."""

    store: SqlRunStore
    hidden_in_feed: Hidden = lambda _: False
    hidden_in_log: Hidden = lambda _: False
    late: list[FeedEvent] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def fetch_feed(self, after: int = 0, limit: int = 1_000) -> list[FeedEvent]:
        """Return the feed without what is hidden; what was withheld comes after all else."""
        whole = self.store.fetch_feed(after, 100_000)
        seen = [each for each in whole if not self.hidden_in_feed(each.event)]
        return (seen + [each for each in self.late if each.position > after])[:limit]

    def fetch_events(self, run_id: str, after_seq: int = 0, limit: int = 1_000) -> list[RunEvent]:
        """Return a run's log without what is hidden."""
        if after_seq == 0:
            self.fetched.append(run_id)
        page = self.store.fetch_events(run_id, after_seq, limit)
        return [event for event in page if not self.hidden_in_log(event)]

    def show_late(self, event: RunEvent, position: int) -> None:
        """Let an event that was hidden come into the feed at a later position."""
        self.late.append(FeedEvent(position, event))

    def backlog(self, after: int = 0) -> Backlog:
        """Measure the true backlog."""
        return self.store.backlog(after)

    def watch(self) -> AbstractContextManager[Watch]:
        """Watch the true store."""
        return self.store.watch()


@dataclass
class Clock:
    """A clock that is moved by hand."""

    now: datetime = datetime(2026, 1, 1, 6, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
