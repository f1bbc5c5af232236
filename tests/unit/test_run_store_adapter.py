"""An adapter as its author would write it: the contract holds for it, and notices what it gets wrong."""

from __future__ import annotations

import ast
import inspect
import json
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest

from sealbook.clock import utc_now
from sealbook.errors import InvalidInput
from sealbook.ledger.events import AppendResult, Backlog, FeedEvent, Polling, RunStore, Watch
from sealbook.model.events import RunEvent
from sealbook.model.run_fold import fold_all
from sealbook.model.run_snapshot import RunSnapshot
from sealbook.testing.run_store_contract import EventFeedContract, RunStoreContract
from tests.support.pages import blocks


class MemoryStore:
    """Keeps events in a list, and one lock for all. `stride` leaves gaps between a run's numbers."""

    def __init__(self, stride: int = 1) -> None:
        self.log: list[RunEvent] = []
        self.stride = stride
        self._lock = threading.Lock()

    def append_event(self, event: RunEvent) -> AppendResult:
        """Store an event once."""
        return self.append_events([event])[0]

    def append_events(self, events: Iterable[RunEvent]) -> list[AppendResult]:
        """Store events, all or none."""
        batch = list(events)
        for event in batch:
            if not isinstance(event, RunEvent):
                raise InvalidInput.of("event", event, "a RunEvent")
        with self._lock:
            return [self.append_one(event) for event in batch]

    def append_one(self, event: RunEvent) -> AppendResult:
        """Store an event under the lock."""
        before = [each for each in self.log if each.run_id == event.run_id]
        for each in before:
            if each.idempotency_key == event.idempotency_key:
                conflict = _text(each) != _text(event)
                return AppendResult(each.run_seq or 0, idempotent=True, persisted=False, conflict=conflict)
        stored = event.stored(self.stride * (len(before) + 1), utc_now())
        self.log.append(stored)
        return AppendResult(stored.run_seq or 0, idempotent=False, persisted=True)

    def fetch_events(self, run_id: str, after_seq: int = 0, limit: int = 1_000) -> list[RunEvent]:
        """Return a run's events in order."""
        return [each for each in self.log if each.run_id == run_id and (each.run_seq or 0) > after_seq][
            :limit
        ]

    def get_snapshot(self, run_id: str) -> RunSnapshot | None:
        """Return the snapshot of a run with events."""
        return self.project_snapshot(run_id) if self.fetch_events(run_id) else None

    def project_snapshot(self, run_id: str) -> RunSnapshot:
        """Replay a run."""
        return fold_all(RunSnapshot.pending(run_id), self.fetch_events(run_id, 0, len(self.log) + 1))

    def fetch_feed(self, after: int = 0, limit: int = 1_000) -> list[FeedEvent]:
        """Return events of all runs."""
        page = self.log[after : after + limit]
        return [FeedEvent(after + place, event) for place, event in enumerate(page, 1)]

    def backlog(self, after: int = 0) -> Backlog:
        """Measure what comes after a position."""
        waiting = self.log[after:]
        return Backlog(len(waiting), waiting[0].persisted_at if waiting else None, after + len(waiting))

    def watch(self) -> AbstractContextManager[Watch]:
        """Look again after a moment."""
        return nullcontext(Polling())


def _text(event: RunEvent) -> str:
    payload = [event.event_data, event.partition]
    return json.dumps(payload, sort_keys=True)  # to Python, 1 and 1.0 and True are equal


class TestMemoryStore(RunStoreContract, EventFeedContract):
    """The contract holds."""

    def make_store(self) -> MemoryStore:
        """Return a new store."""
        return MemoryStore()


class TestStoreWithGaps(TestMemoryStore):
    """The contract holds for numbers that do not follow each other."""

    gapless = False

    def make_store(self) -> MemoryStore:
        """Return a new store that gives out every third number."""
        return MemoryStore(stride=3)


class _Forgetful(MemoryStore):
    """Keeps the contract's fields, and no others."""

    def append_one(self, event: RunEvent) -> AppendResult:
        return super().append_one(replace(event, extra={}))


class _Repeating(MemoryStore):
    """Stores a key as often as it comes."""

    def append_one(self, event: RunEvent) -> AppendResult:
        self.log.append(event.stored(len(self.log) + 1, utc_now()))
        return AppendResult(len(self.log), idempotent=False, persisted=True)


class _Renumbering(MemoryStore):
    """Answers a key that is stored with the number that would have come next."""

    def append_one(self, event: RunEvent) -> AppendResult:
        result = super().append_one(event)
        return result if result.persisted else result._replace(run_seq=len(self.log) + 1)


class _Trusting(MemoryStore):
    """Never looks whether a payload differs."""

    def append_one(self, event: RunEvent) -> AppendResult:
        return super().append_one(event)._replace(conflict=False)


class _Piecemeal(MemoryStore):
    """Stores a batch as far as it can be stored."""

    def append_events(self, events: Iterable[RunEvent]) -> list[AppendResult]:
        return [result for event in events for result in super(_Piecemeal, self).append_events([event])]


class _Disordered(MemoryStore):
    """Gives a batch's results in the order of their numbers."""

    def append_events(self, events: Iterable[RunEvent]) -> list[AppendResult]:
        return sorted(super().append_events(events), key=lambda result: result.run_seq)


class _Unlimited(MemoryStore):
    """Knows no pages."""

    def fetch_events(self, run_id: str, after_seq: int = 0, limit: int = 1_000) -> list[RunEvent]:  # noqa: ARG002
        return super().fetch_events(run_id, after_seq)


class _Late(MemoryStore):
    """Shows number 30 of a run only after a later one."""

    later = False

    def fetch_events(self, run_id: str, after_seq: int = 0, limit: int = 1_000) -> list[RunEvent]:
        page = super().fetch_events(run_id, after_seq, limit)
        shown = [event for event in page if self.later or event.run_seq != 30]
        self.later = self.later or any((event.run_seq or 0) > 30 for event in shown)
        return shown


class _Stuck(MemoryStore):
    """Has a snapshot that knows how far it is, and not what happened."""

    def get_snapshot(self, run_id: str) -> RunSnapshot | None:
        snapshot = super().get_snapshot(run_id)
        return snapshot and RunSnapshot(run_id, last_event_seq=snapshot.last_event_seq)


class _Leaking(MemoryStore):
    """Feeds the newest events only, as a reader that began now would see them."""

    def fetch_feed(self, after: int = 0, limit: int = 1_000) -> list[FeedEvent]:
        return super().fetch_feed(after, len(self.log))[-limit:]


@pytest.mark.parametrize("store", MemoryStore.__subclasses__(), ids=lambda store: store.__doc__)
def test_what_an_adapter_gets_wrong_is_noticed(store: Callable[[], MemoryStore]) -> None:
    """Some test of the suites fails for each promise that is not kept, and by an assertion."""

    class Wrong(RunStoreContract, EventFeedContract):
        def make_store(self) -> MemoryStore:
            return store()

    wrong = Wrong()
    failed = []
    for name in dir(wrong):
        if name.startswith("test_"):
            try:
                getattr(wrong, name)()
            except AssertionError:
                failed.append(name)
    assert failed


def test_the_methods_of_the_page_are_those_of_the_protocol() -> None:
    """How-to/write-a-run-store-adapter.md shows what an adapter has to have, and nothing else."""
    shown, suite, feed = [each.text for each in blocks("how-to/write-a-run-store-adapter.md")]
    assert signatures(shown) == {
        name: text.replace("PAGE", "1000") for name, text in signatures(inspect.getsource(RunStore)).items()
    }
    for text in (suite, feed):
        imported = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
        exec(compile(ast.Module(list(imported), []), "page", "exec"), {})


def signatures(source: str) -> dict[str, str]:
    """Return the methods of a class in source, each as it is called."""
    [kind] = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    methods = [node for node in kind.body if isinstance(node, ast.FunctionDef)]
    return {
        node.name: f"{ast.unparse(node.args)} -> {ast.unparse(node.returns)}"
        for node in methods
        if node.returns
    }
