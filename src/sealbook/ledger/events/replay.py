"""Folding a run's log, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from sealbook.model.events import RunEvent
from sealbook.model.run_fold import fold_all
from sealbook.model.run_snapshot import RunSnapshot

REPLAY_PAGE = 5_000


class Replayed(NamedTuple):
    """A snapshot, and how many events were folded onto which one to get there."""

    snapshot: RunSnapshot
    onto: RunSnapshot
    events: int


FetchEvents = Callable[[str, int, int], list[RunEvent]]
"""`fetch_events(run_id, after_seq, limit)` of any store."""


def replay(fetch_events: FetchEvents, onto: RunSnapshot) -> Replayed:
    """Fold all that a run's log has after a snapshot."""
    events = 0

    def log() -> Iterator[RunEvent]:
        nonlocal events
        after_seq = onto.last_event_seq
        while page := fetch_events(onto.run_id, after_seq, REPLAY_PAGE):
            events += len(page)
            yield from page
            after_seq = page[-1].run_seq or after_seq  # a stored event has a number

    return Replayed(fold_all(onto, log()), onto, events)
