"""The contract of a run-event store, as a suite that any adapter can run (R-EVT-1 to R-EVT-7).

Subclass `RunStoreContract` in a test module and return a new, empty store from `make_store`:

    class TestMyStore(RunStoreContract):
        def make_store(self) -> RunStore:
            return MyStore(...)

The methods are plain functions with assertions, so that pytest and unittest alike can run them. A store that
also has a feed runs `EventFeedContract` too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Protocol, TypeVar

from sealbook.errors import InvalidInput
from sealbook.ledger.events import AppendResult, EventFeed, FeedEvent, RunStore
from sealbook.model.events import RunEvent
from sealbook.model.run_fold import fold_all
from sealbook.model.run_snapshot import RunSnapshot, RunStatus

Found = TypeVar("Found")

RUN = "01J8ZQ6T5N8W3Y2V7R4K9M0XCE"
OTHER_RUN = "01J8ZQ6T5N8W3Y2V7R4K9M0XCF"


def story(run_id: str = RUN) -> list[RunEvent]:
    """Return the events of a run in which a step fails, is tried again, and ends well."""
    return [
        RunEvent.new(run_id, "RunQueued"),
        RunEvent.new(run_id, "RunStarted"),
        RunEvent.new(run_id, "StepStarted", "load", 1),
        RunEvent.new(run_id, "StepFailed", "load", 1, event_data={"error": "disk full"}),
        RunEvent.new(run_id, "StepStarted", "load", 2),
        RunEvent.new(run_id, "StepCompleted", "load", 2, event_data={"artifacts": ["a.parquet"]}),
        RunEvent.new(run_id, "Unheard", event_data={"of": True}),
        RunEvent.new(run_id, "RunCompleted"),
    ]


class RunStoreContract(ABC):
    """What every store does.

    A store that gives out numbers before it commits may leave some out, and show a lower one after a higher
    one: it sets `gapless = False`. A projector copes with that (R-EVT-9), at a price.
    """

    gapless = True

    @abstractmethod
    def make_store(self) -> RunStore:
        """Return a new, empty store."""

    def test_an_event_comes_back_as_it_was_appended(self) -> None:
        """Every field of the contract survives, unknown members too."""
        store = self.make_store()
        appended = RunEvent.from_dict(
            {
                "runId": RUN,
                "eventType": "StepCompleted",
                "stepId": "Schritt №1 \U0001f9ee",
                "logicalAttemptId": "2",
                "engineAttemptId": "7",
                "planVersion": "β",
                "eventId": "3f0c8a52-4f0e-4c8e-9a0a-0d4f7d2f9b11",
                "eventData": {"b": [1, 2.5, None, True], "a": {"": "é\u2028"}, "big": 2**70, "f": 1e23},
                "emittedAt": "2026-01-01T08:00:00.000001+02:00",
                "adapterVersion": "1.2",
                "engineRunRef": ["workflow", 1],
                "causedBySignalId": "3f0c8a52-4f0e-4c8e-9a0a-0d4f7d2f9b12",
                "parentEventId": "3f0c8a52-4f0e-4c8e-9a0a-0d4f7d2f9b13",
                "partition": "demo/Acme/q/2026-01-01",
                "futureField": {"kept": ["as", "is"]},
            }
        )
        result = store.append_event(appended)
        assert result == AppendResult(result.run_seq, idempotent=False, persisted=True)
        assert len(store.fetch_events(RUN)) == 1
        found = store.fetch_events(RUN)[0]
        assert found.persisted_at is not None
        assert found == appended.stored(result.run_seq, found.persisted_at)
        assert RunEvent.from_json(found.to_json()) == found

    def test_a_key_that_an_event_brings_is_kept(self) -> None:
        """R-EVT-3: it is one of its run; two runs may have the same."""
        store = self.make_store()
        events = [RunEvent(run_id=run, event_type="T", idempotency_key="abc123") for run in (RUN, OTHER_RUN)]
        assert [result.persisted for result in store.append_events(events)] == [True, True]
        again = store.append_event(RunEvent(run_id=RUN, event_type="U", idempotency_key="abc123"))
        assert (again.idempotent, again.persisted) == (True, False)
        assert [event.idempotency_key for event in store.fetch_events(RUN)] == ["abc123"]

    def test_event_data_is_any_json_value(self) -> None:
        """R-EVT-3: null, text, numbers and lists too, and a snapshot does not mind."""
        store = self.make_store()
        values: list[object] = [None, False, 0, "text", [], [None], {}]
        for step, value in enumerate(values):
            store.append_event(RunEvent.new(RUN, "StepStarted", f"{step}", event_data=value))
        assert [event.event_data for event in store.fetch_events(RUN)] == values
        assert store.project_snapshot(RUN).last_event_seq == store.fetch_events(RUN)[-1].run_seq

    def test_another_partition_under_a_known_key_is_a_conflict(self) -> None:
        """R-EVT-4: the partition is a part of the payload."""
        store = self.make_store()
        store.append_event(RunEvent.new(RUN, "T", partition="demo/Acme/q/2026-01-01"))
        assert not store.append_event(RunEvent.new(RUN, "T", partition="demo/Acme/q/2026-01-01")).conflict
        assert store.append_event(RunEvent.new(RUN, "T", partition="demo/Acme/q/2026-01-02")).conflict

    def test_a_time_that_was_not_given_is_that_of_the_store(self) -> None:
        """R-EVT-1: emitted_at is persisted_at where nobody said otherwise."""
        store = self.make_store()
        store.append_event(RunEvent.new(RUN, "RunStarted"))
        east = timezone(timedelta(hours=5, minutes=30))
        store.append_event(
            RunEvent.new(RUN, "RunPaused", emitted_at=datetime(1999, 12, 31, 23, 59, tzinfo=east))
        )
        first, second = store.fetch_events(RUN)
        assert first.emitted_at == first.persisted_at is not None
        assert second.emitted_at == datetime(1999, 12, 31, 18, 29, tzinfo=UTC)

    def test_numbers_go_up_in_the_order_of_the_calls(self) -> None:
        """R-EVT-2: strictly increasing for each run, and each run by itself."""
        store = self.make_store()
        one = [store.append_event(event).run_seq for event in story()]
        two = [result.run_seq for result in store.append_events(story(OTHER_RUN))]
        assert one == sorted(set(one))
        assert two == sorted(set(two))
        if self.gapless:
            assert one == two == list(range(1, 9))
        assert [event.run_seq for event in store.fetch_events(RUN)] == one
        assert [event.event_type for event in store.fetch_events(RUN)] == [e.event_type for e in story()]

    def test_a_key_appended_again_returns_its_number(self) -> None:
        """R-EVT-4: nothing is stored; the same payload is no conflict, whatever else differs."""
        store = self.make_store()
        first = store.append_event(RunEvent.new(RUN, "RunStarted", event_data={"a": 1, "b": 2}))
        again = RunEvent.new(
            RUN,
            "RunStarted",
            event_data={"b": 2, "a": 1},
            emitted_at=datetime(2026, 1, 2, tzinfo=UTC),
            event_id="3f0c8a52-4f0e-4c8e-9a0a-0d4f7d2f9b11",
            engine_attempt_id=2,
        )
        assert store.append_event(again) == AppendResult(first.run_seq, idempotent=True, persisted=False)
        assert len(store.fetch_events(RUN)) == 1

    def test_another_payload_under_a_known_key_is_a_conflict(self) -> None:
        """R-EVT-4: the result says so, and the stored event stands."""
        store = self.make_store()
        first = store.append_event(RunEvent.new(RUN, "RunStarted", event_data={"a": 1}))
        for data in ({"a": 2}, {}, {"a": 1, "b": None}, {"a": 1.0}, {"a": "1"}, {"a": True}):
            result = store.append_event(RunEvent.new(RUN, "RunStarted", event_data=data))
            assert result == AppendResult(first.run_seq, idempotent=True, persisted=False, conflict=True), (
                data
            )
        assert [event.event_data for event in store.fetch_events(RUN)] == [{"a": 1}]

    def test_a_batch_of_many_runs(self) -> None:
        """R-EVT-4: results in the order given; a key twice in a batch, and one stored before, count once."""
        store = self.make_store()
        queued = store.append_event(RunEvent.new(RUN, "RunQueued", event_data={"x": 1}))
        twice = RunEvent.new(RUN, "RunStarted")
        results = store.append_events(
            [
                RunEvent.new(OTHER_RUN, "RunStarted"),
                twice,
                RunEvent.new(RUN, "RunQueued", event_data={"x": 1}),
                twice,
                RunEvent.new(RUN, "RunStarted", event_data={"other": True}),
                RunEvent.new(RUN, "RunQueued", event_data={"x": 2}),
                RunEvent.new(OTHER_RUN, "RunCompleted"),
            ]
        )
        assert [(r.idempotent, r.persisted, r.conflict) for r in results] == [
            (False, True, False),
            (False, True, False),
            (True, False, False),
            (True, False, False),
            (True, False, True),
            (True, False, True),
            (False, True, False),
        ]
        assert results[1].run_seq == results[3].run_seq == results[4].run_seq
        assert results[2].run_seq == results[5].run_seq == queued.run_seq
        assert [event.event_type for event in store.fetch_events(RUN)] == ["RunQueued", "RunStarted"]
        assert [event.event_type for event in store.fetch_events(OTHER_RUN)] == ["RunStarted", "RunCompleted"]

    def test_an_empty_batch(self) -> None:
        """Nothing in, nothing out."""
        assert self.make_store().append_events([]) == []

    def test_a_batch_is_all_or_nothing(self) -> None:
        """R-EVT-1: one transaction. What is no event spoils the batch before anything is stored."""
        store = self.make_store()
        try:
            store.append_events([RunEvent.new(RUN, "RunStarted"), "no event"])  # type: ignore[list-item]
        except InvalidInput:
            pass
        else:
            raise AssertionError("what is no RunEvent was taken")
        assert store.fetch_events(RUN) == []

    def test_fetching_goes_on_from_a_watermark(self) -> None:
        """Pages of any size give the whole log once, in order."""
        store = self.make_store()
        store.append_events(story())
        whole = store.fetch_events(RUN)
        for size in (1, 3, 8, 9):
            watermark, pages = 0, []
            while page := store.fetch_events(RUN, watermark, size):
                assert len(page) <= size
                pages += page
                watermark = page[-1].run_seq or 0
            assert pages == whole
        assert store.fetch_events("no such run") == []

    def test_snapshots_are_the_fold_of_the_log(self) -> None:
        """R-EVT-7: at every point. The latest snapshot may be behind; it is the fold of a beginning then."""
        store = self.make_store()
        assert store.get_snapshot(RUN) is None
        assert store.project_snapshot(RUN) == RunSnapshot.pending(RUN)
        for event in story():
            store.append_event(event)
            log = store.fetch_events(RUN)
            assert store.project_snapshot(RUN) == fold_all(RunSnapshot.pending(RUN), log)
            latest = store.get_snapshot(RUN) or RunSnapshot.pending(RUN)
            reached = [event for event in log if (event.run_seq or 0) <= latest.last_event_seq]
            assert latest == fold_all(RunSnapshot.pending(RUN), reached)
        snapshot = store.project_snapshot(RUN)
        assert snapshot.status is RunStatus.COMPLETED
        assert [attempt.error for attempt in snapshot.steps["load"].attempts] == ["disk full", None]
        assert snapshot.artifacts == ("a.parquet",)

    def test_duplicates_change_no_snapshot(self) -> None:
        """R-EVT-4: the hash stays what it was."""
        store = self.make_store()
        store.append_events(story())
        before = store.project_snapshot(RUN).hash
        for _ in range(3):
            store.append_events(story()[::-1] * 2)
        assert store.project_snapshot(RUN).hash == before

    def test_one_key_appended_by_many_at_once_is_stored_once(self) -> None:
        """R-EVT-4 under concurrency: one caller stores it, and all get its number."""
        store = self.make_store()
        event = RunEvent.new(RUN, "RunStarted")
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: store.append_event(event), range(24)))
        assert len(store.fetch_events(RUN)) == 1
        assert {result.run_seq for result in results} == {store.fetch_events(RUN)[0].run_seq}
        assert sum(result.persisted for result in results) == 1
        assert sum(result.idempotent for result in results) == 23

    def test_writers_of_one_run_at_once(self) -> None:
        """R-EVT-2: every number is given once, and every caller got the number under which its event is."""
        store = self.make_store()
        events = [RunEvent.new(RUN, "StepStarted", f"s{number % 40}") for number in range(80)]
        batches = [events[start : start + 5] for start in range(0, 80, 5)]
        with ThreadPoolExecutor(4) as pool:
            results = [result for batch in pool.map(store.append_events, batches) for result in batch]
        log = {event.idempotency_key: event.run_seq for event in store.fetch_events(RUN)}
        assert len(log) == len(set(log.values())) == 40
        assert [log[event.idempotency_key] for event in events] == [result.run_seq for result in results]
        assert sum(result.persisted for result in results) == 40

    def test_a_reader_of_a_run_alongside_its_writers_misses_nothing(self) -> None:
        """R-EVT-2: whoever has seen a number never finds a lower one later."""
        if not self.gapless:
            return
        store = self.make_store()

        def look(last: RunEvent | None) -> list[RunEvent]:
            return store.fetch_events(RUN, (last and last.run_seq) or 0, 7)

        assert _read_alongside_writers(store, [RUN], look) == store.fetch_events(RUN)


def _read_alongside_writers(
    store: RunStore, runs: list[str], look: Callable[[Found | None], list[Found]]
) -> list[Found]:
    """Append 60 events to each run from several threads, and return what a reader finds meanwhile."""
    batches = [
        [RunEvent.new(run_id, "StepStarted", f"s{first + number}") for number in range(3)]
        for first in range(0, 60, 3)
        for run_id in runs
    ]
    found: list[Found] = []
    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(store.append_events, batch) for batch in batches]
        while True:
            ended = all(write.done() for write in writing)  # before the look, which then sees all there is
            page = look(found[-1] if found else None)
            found += page
            if ended and not page:
                break
    assert sum(result.persisted for write in writing for result in write.result()) == 60 * len(runs)
    return found


class StoreWithFeed(RunStore, EventFeed, Protocol):
    """A store that also has a feed."""


class EventFeedContract(ABC):
    """What the feed of a store does (R-EVT-8)."""

    @abstractmethod
    def make_store(self) -> StoreWithFeed:
        """Return a new, empty store."""

    def test_the_feed_has_all_runs_in_order(self) -> None:
        """Positions go up; each run's events come in the order of their numbers; none is left out."""
        store = self.make_store()
        for first, second in zip(story(), story(OTHER_RUN), strict=True):
            store.append_events([first, second])
        feed = store.fetch_feed()
        assert [each.position for each in feed] == sorted({each.position for each in feed})
        for run_id in (RUN, OTHER_RUN):
            assert [each.event for each in feed if each.event.run_id == run_id] == store.fetch_events(run_id)

    def test_the_feed_goes_on_from_a_position(self) -> None:
        """Pages of any size give the whole feed once."""
        store = self.make_store()
        store.append_events(story() + story(OTHER_RUN))
        whole = store.fetch_feed()
        for size in (1, 7, 100):
            after, pages = 0, list[FeedEvent]()
            while page := store.fetch_feed(after, size):
                assert len(page) <= size
                pages += page
                after = page[-1].position
            assert pages == whole

    def test_a_reader_of_the_feed_alongside_writers_misses_nothing(self) -> None:
        """R-EVT-8: no event comes before a position that a reader has passed."""
        store = self.make_store()

        def look(last: FeedEvent | None) -> list[FeedEvent]:
            return store.fetch_feed(last.position if last else 0, 7)

        runs = [f"run-{number}" for number in range(4)]
        assert _read_alongside_writers(store, runs, look) == store.fetch_feed()

    def test_duplicates_are_not_in_the_feed(self) -> None:
        """What was not stored is not fed."""
        store = self.make_store()
        store.append_events(story() * 2)
        store.append_events(story())
        assert len(store.fetch_feed()) == len(story())

    def test_the_backlog_is_what_comes_after_a_position(self) -> None:
        """It counts events, and says since when the oldest of them waits."""
        store = self.make_store()
        assert store.backlog().events == 0
        assert store.backlog().oldest is None
        store.append_events(story())
        feed = store.fetch_feed()
        backlog = store.backlog(feed[4].position)
        assert backlog.events == 3
        assert backlog.oldest == feed[5].event.persisted_at
        assert backlog.end == feed[-1].position
        assert store.backlog(feed[-1].position).events == 0

    def test_a_watch_lets_a_reader_look_again(self) -> None:
        """It returns at once after something was found, and in time when nothing was."""
        store = self.make_store()
        with store.watch() as watch:
            watch.rest(found=True, at_most=60)
            watch.rest(found=False, at_most=0.01)
            watch.rest(found=False, at_most=0.01)
