"""A store that shows gaps: the run is marked STALE, read again in full, and resumes (R-EVT-9)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events import Projector, RunSnapshots, SqlRunStore
from sealbook.model.events import RunEvent
from sealbook.testing.run_store_contract import OTHER_RUN, RUN, story
from tests.support.event_stores import Clock, FaultyFeed, Hidden


def _number(*numbers: int) -> Hidden:
    return lambda event: event.run_id == RUN and event.run_seq in numbers


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    """Where projections are written."""
    opened = Database(ledger_url)
    yield opened
    opened.close()


def _run(store: SqlRunStore, run_id: str = RUN) -> tuple[int, bool]:
    """Return how far the run is projected, and whether it is STALE."""
    (run,) = [run for run in store.list_runs() if run.snapshot.run_id == run_id]
    return run.snapshot.last_event_seq, run.stale


def _agrees(store: SqlRunStore) -> bool:
    return all(
        not run.stale and run.snapshot == store.project_snapshot(run.snapshot.run_id)
        for run in store.list_runs()
    )


def test_a_gap_marks_the_run_stale_until_its_log_is_read(ledger: Ledger, database: Database) -> None:
    """R-EVT-9: [1..3], then [5, 6]: STALE, read in full, resumed; other runs go on."""
    store = ledger.run_store
    feed = FaultyFeed(store)
    projector = Projector(database, feed, RunSnapshots(), LedgerClock(Clock()))
    store.append_events(story()[:3])
    projector.catch_up()
    assert _run(store) == (3, False)
    store.append_events(story()[3:6] + story(OTHER_RUN)[:2])
    feed.hidden_in_feed = _number(4)
    assert projector._take_batch(projector._active())
    assert _run(store) == (3, True)
    assert _run(store, OTHER_RUN) == (2, False)
    assert feed.fetched == []
    projector._heal(projector._active())
    assert feed.fetched == [RUN]
    assert _run(store) == (6, False)
    assert _agrees(store)


def test_a_run_stays_stale_while_its_log_lags_behind_the_feed(ledger: Ledger, database: Database) -> None:
    """R-EVT-9: it resumes once the watermark moves as far as the feed has been."""
    store = ledger.run_store
    feed = FaultyFeed(store, hidden_in_feed=_number(2), hidden_in_log=_number(5, 6))
    projector = Projector(database, feed, RunSnapshots(), LedgerClock(Clock()))
    store.append_events(story()[:6])
    for _ in range(2):
        projector.catch_up()
        assert _run(store) == (0, True)
    feed.hidden_in_log = _number(5)
    projector.catch_up()
    assert _run(store) == (6, False)
    feed.hidden_in_log = _number()
    store.append_events(story()[6:])
    projector.catch_up()
    assert _agrees(store), "what had been missing was read when the run moved on"


def test_a_number_that_comes_late_is_taken_in(ledger: Ledger, database: Database) -> None:
    """R-EVT-9: [1..3], [5, 6], then [4]: the log had not shown it either; it is not lost."""
    store = ledger.run_store
    feed = FaultyFeed(store, hidden_in_feed=_number(4), hidden_in_log=_number(4))
    projector = Projector(database, feed, RunSnapshots(), LedgerClock(Clock()))
    results = store.append_events(story()[:6])
    projector.catch_up()
    assert _run(store) == (6, False)
    assert not _agrees(store)
    feed.hidden_in_log = _number()
    feed.show_late(store.fetch_events(RUN)[3], store.backlog().end + 1)
    assert projector._take_batch(projector._active())
    assert _run(store) == (6, True)
    projector._heal(projector._active())
    assert _agrees(store)
    assert [result.run_seq for result in results] == [1, 2, 3, 4, 5, 6]


def test_what_the_feed_says_twice_is_taken_once(ledger: Ledger, database: Database) -> None:
    """R-EVT-7: a repeated event changes nothing, and costs no second reading."""
    store = ledger.run_store
    store.append_events(story())
    feed = FaultyFeed(store)
    projector = Projector(database, feed, RunSnapshots(), LedgerClock(Clock()))
    projector.catch_up()
    for offset, event in enumerate(store.fetch_events(RUN)):
        feed.show_late(event, store.backlog().end + 1 + offset)
    assert projector._take_batch(projector._active())
    assert feed.fetched == []
    assert _agrees(store)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hidden=st.sets(st.integers(1, 8)), first=st.integers(0, 8), size=st.integers(1, 9))
def test_any_gap_heals(ledger: Ledger, ledger_url: str, hidden: set[int], first: int, size: int) -> None:
    """R-EVT-9: whatever the feed leaves out, the projection ends as a replay does."""
    store = ledger.run_store
    run = f"{hidden}-{first}-{size}"
    with closing(Database(ledger_url)) as database:
        feed = FaultyFeed(store, hidden_in_feed=lambda e: e.run_id == run and e.run_seq in hidden)
        projector = Projector(database, feed, RunSnapshots(), LedgerClock(Clock()), batch=size)
        for part in (story(run)[:first], story(run)[first:], [RunEvent.new(run, "Late")]):
            store.append_events(part)
            projector.catch_up(patience=0)
    assert _agrees(store)


def test_a_late_event_of_a_retired_run_heals_too(ledger: Ledger, database: Database) -> None:
    """R-EVT-9: what is read again goes on from how the run had ended."""
    store = ledger.run_store
    store.append_events(story())
    store.retire_run(RUN, actor="olga", reason="old")
    store.append_events([RunEvent.new(RUN, "PartitionHidden", f"load/{number}") for number in range(3)])
    projector = Projector(
        database, FaultyFeed(store, hidden_in_feed=_number(10)), RunSnapshots(), LedgerClock(Clock())
    )
    assert projector._take_batch(projector._active())
    assert _run(store) == (8, True)
    projector._heal(projector._active())
    assert _run(store) == (11, False)
    assert _agrees(store)
    store.append_event(RunEvent.new(RUN, "PartitionHidden", "load/4"))
    assert projector._take_batch(projector._active())
    assert _run(store) == (12, False)


def test_catching_up_alerts_too(ledger_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """R-EVT-9: PROJECTOR_LAG_HIGH is logged where no daemon runs; a rebuild, of old events, is silent."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        store = ledger.run_store
        for waited, alerts in ((4, 0), (6, 1)):
            caplog.clear()
            store.append_event(RunEvent.new(RUN, "StepStarted", f"{waited}"))
            clock.pass_seconds(waited)
            store.projector().catch_up()
            assert [record.getMessage()[:18] for record in caplog.records] == ["PROJECTOR_LAG_HIGH"] * alerts
        caplog.clear()
        clock.pass_seconds(60)
        store.projector().rebuild()
        assert caplog.records == []


def test_whoever_cannot_catch_up_alerts(ledger_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """R-EVT-9: another projector holds the lease and does nothing, so that nobody else would say it."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        store = ledger.run_store
        idle = store.projector(lease=timedelta(minutes=5))
        store.append_event(RunEvent.new(RUN, "RunStarted"))
        assert idle._take_batch(idle._active(), keep=True)
        store.append_event(RunEvent.new(RUN, "StepStarted", "x"))
        clock.pass_seconds(6)
        assert store.projector().catch_up(patience=0).events == 1
    assert [record.getMessage()[:18] for record in caplog.records] == ["PROJECTOR_LAG_HIGH"]


def test_high_lag_alerts_and_resyncs(ledger_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """R-EVT-9: over 5 s PROJECTOR_LAG_HIGH is logged; over 10 s runs are read again in full."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger, closing(Database(ledger_url)) as database:
        store = ledger.run_store
        feed = FaultyFeed(store)
        projector = Projector(database, feed, RunSnapshots(), LedgerClock(clock))

        def follow_once() -> None:
            looks = iter([False, True])
            projector.follow(lambda: next(looks))

        for waited, alerts, read_again in ((4, 0, []), (6, 1, []), (11, 1, [RUN]), (1, 0, [])):
            caplog.clear()
            feed.fetched.clear()
            store.append_event(RunEvent.new(RUN, "StepStarted", f"{waited}"))
            clock.pass_seconds(waited)
            with caplog.at_level(logging.WARNING):
                follow_once()
            said = [record.getMessage() for record in caplog.records]
            assert [text.startswith("PROJECTOR_LAG_HIGH: projection runs is") for text in said] == [
                True
            ] * alerts
            assert feed.fetched == read_again
            assert _agrees(store)
            projector._alerted = False


def test_following_heals_by_itself(ledger: Ledger, database: Database) -> None:
    """R-EVT-9: a daemon needs no event to look again at a run that is STALE."""
    store = ledger.run_store
    feed = FaultyFeed(store, hidden_in_feed=_number(2), hidden_in_log=_number(8))
    store.append_events(story())
    stop = threading.Event()
    projector = Projector(database, feed, RunSnapshots(), LedgerClock(Clock()))
    daemon = threading.Thread(target=projector.follow, args=(stop.is_set,))
    daemon.start()
    try:
        while not store.list_runs():
            stop.wait(0.01)
        assert _run(store) == (0, True)
        feed.hidden_in_log = _number()
        while _run(store)[1]:
            stop.wait(0.01)
    finally:
        stop.set()
        daemon.join()
    assert _agrees(store)
