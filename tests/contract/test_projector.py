"""The projector: exactly once, one at a time, rebuilt while read (R-EVT-8)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
)

from sealbook.errors import Conflict
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events import FeedEvent, Projector, RunSnapshots, SqlRunStore, projections, tables
from sealbook.model.events import RunEvent
from sealbook.model.run_snapshot import RunSnapshot
from sealbook.testing.run_store_contract import OTHER_RUN, RUN, story
from tests.support.event_stores import Clock, FaultyFeed
from tests.support.ledger import PostgresqlServer


def _projected(store: SqlRunStore) -> dict[str, RunSnapshot]:
    return {run.snapshot.run_id: run.snapshot for run in store.list_runs()}


def _replayed(store: SqlRunStore) -> dict[str, RunSnapshot]:
    runs = {each.event.run_id for each in store.fetch_feed(0, 100_000)}
    return {run_id: store.project_snapshot(run_id) for run_id in sorted(runs, reverse=True)}


def test_catching_up_in_batches_of_any_size(ledger: Ledger) -> None:
    """R-EVT-7, R-EVT-8: incremental projection equals replay, wherever the batches end."""
    store = ledger.run_store
    for first, second in zip(story(), story(OTHER_RUN), strict=True):
        store.append_events([first, second])
        for size in (1, 2, 3):
            assert store.projector(batch=size).catch_up().events == 0
            assert _projected(store) == _replayed(store)
    assert [run.stale for run in store.list_runs()] == [False, False]
    assert [run.snapshot.run_id for run in store.list_runs(1)] == [OTHER_RUN]
    assert [run.snapshot.run_id for run in store.list_runs(before=OTHER_RUN)] == [RUN]


def test_a_snapshot_is_of_now(ledger: Ledger) -> None:
    """What was appended after the last projection is folded onto it when it is read."""
    store = ledger.run_store
    for event in story():
        store.append_event(event)
        assert store.get_snapshot(RUN) == store.project_snapshot(RUN)
        if event.event_type.startswith("Step"):
            store.projector().catch_up()


def test_lag_counts_events_and_seconds(ledger_url: str) -> None:
    """R-EVT-9: measured from the oldest event that is not projected; names of alerts above the bounds."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        projector = ledger.run_store.projector()
        assert (projector.lag().events, projector.lag().seconds) == (0, 0.0)
        ledger.run_store.append_events(story()[:2])
        clock.pass_seconds(5)
        ledger.run_store.append_events(story()[2:])
        lag = projector.lag()
        assert (lag.events, lag.seconds, lag.alert, lag.needs_resync) == (8, 5.0, None, False)
        clock.pass_seconds(0.5)
        assert projector.lag().alert == "PROJECTOR_LAG_HIGH"
        clock.pass_seconds(4.5)
        assert not projector.lag().needs_resync
        clock.pass_seconds(0.5)
        assert projector.lag().needs_resync
        assert projector.catch_up().events == 0
        assert projector.lag().seconds == 0.0


class _Dying(RunSnapshots):
    """A projection whose writing fails once it is told to."""

    dying = False

    def apply(self, connection: Connection, projection_id: int, events: Sequence[FeedEvent]) -> None:
        """Write, and then fail."""
        super().apply(connection, projection_id, events)
        if self.dying:
            raise RuntimeError("the power went out")


def test_position_and_projection_are_one_transaction(ledger: Ledger, ledger_url: str) -> None:
    """R-EVT-8: a projector that dies after writing has written nothing; the next one repeats nothing."""
    store = ledger.run_store
    store.append_events(story()[:4])
    with closing(Database(ledger_url)) as database:
        projection = _Dying()
        projector = Projector(database, store, projection, LedgerClock(Clock()))
        projector.catch_up()
        store.append_events(story()[4:])
        projection.dying = True
        with pytest.raises(RuntimeError):
            projector.catch_up()
    assert store.projector().lag().events == 4
    assert _projected(store)[RUN].last_event_seq == 4
    store.projector().catch_up()
    assert _projected(store) == _replayed(store)


def test_one_projector_at_a_time(ledger_url: str) -> None:
    """R-EVT-8: others of the name wait for the lease of the one at work, and take over when it runs out."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        store = ledger.run_store
        store.append_events(story())
        first = store.projector(batch=8)
        assert first._take_batch(first._active(), keep=True)
        store.append_events(story(OTHER_RUN))
        second = store.projector()
        assert second.catch_up(patience=0).events == 8
        assert not second._take_batch(second._active())
        clock.pass_seconds(5.1)
        assert second.catch_up(patience=0).events == 0
        assert _projected(store) == _replayed(store)
        assert not first._take_batch(first._active())


def test_a_projector_that_lost_its_lease_writes_nothing(ledger_url: str) -> None:
    """R-EVT-8: one that was asleep while another took over finds the position moved, and repeats nothing."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger:
        store = ledger.run_store
        store.append_events(story())
        sleeper, other = store.projector(batch=3), store.projector()
        state = sleeper._active()
        assert other._take_batch(state)
        assert not sleeper._take_batch(state)
        assert store.projector().lag().events == 0
        assert _projected(store) == _replayed(store)


def test_many_projectors_at_once(ledger: Ledger) -> None:
    """R-EVT-8: embedded projectors of many commands, at once with appends, end in what a replay gives."""
    store = ledger.run_store

    def append_and_catch_up(number: int) -> None:
        for event in story(f"run-{number}"):
            store.append_event(event)
            store.projector(batch=2).catch_up()

    threads = [threading.Thread(target=append_and_catch_up, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.projector().lag().events == 0
    assert _projected(store) == _replayed(store)


def test_catching_up_waits_for_whoever_is_at_it(ledger: Ledger) -> None:
    """Every command that appends ends with its events projected, by itself or by another."""
    store = ledger.run_store
    stop = threading.Event()
    daemon = threading.Thread(target=store.projector(lease=timedelta(minutes=5)).follow, args=(stop.is_set,))
    daemon.start()
    try:
        for number in range(3):
            store.append_events(story(f"run-{number}"))
            assert store.projector().catch_up(patience=30).events == 0
    finally:
        stop.set()
        daemon.join()
    assert _projected(store) == _replayed(store)
    store.append_event(RunEvent.new(RUN, "RunStarted"))
    assert store.projector().catch_up(patience=0).events == 0, "the daemon let go of its lease"


def test_a_daemon_that_is_interrupted_lets_go(ledger_url: str) -> None:
    """R-EVT-8: whoever comes next need not wait for a lease that nobody is behind."""
    with open_ledger(ledger_url, clock=Clock()) as ledger:
        ledger.run_store.append_events(story())

        def stop() -> bool:
            if ledger.run_store.list_runs():
                raise KeyboardInterrupt
            return False

        with pytest.raises(KeyboardInterrupt):
            ledger.run_store.projector().follow(stop)
        ledger.run_store.append_events(story(OTHER_RUN))
        assert ledger.run_store.projector().catch_up(patience=0).events == 0


def test_a_rebuild_is_read_only_when_done(ledger: Ledger, ledger_url: str) -> None:
    """R-EVT-8: reads go on with the old projection, which moves on too, until the new one takes its place."""
    store = ledger.run_store
    store.append_events(story() + story(OTHER_RUN))
    store.projector().catch_up()
    with closing(Database(ledger_url)) as database:
        _forge(database)
        forged = _projected(store)
        assert forged[RUN].status == "FAILED"
        projector = Projector(database, store, RunSnapshots(), LedgerClock(Clock()), batch=3)
        database.write(projector._begin_building)
        while projector._take_batch(projector._building(), keep=True):
            assert _projected(store) == forged
        store.append_events([RunEvent.new(OTHER_RUN, "PartitionHidden", "load/x")])
        assert store.projector().catch_up().events == 0
        assert _projected(store)[OTHER_RUN].counters.partitions_hidden == 1
        behind = projector._building()
        assert not database.write(lambda c: projections.swap(c, behind, behind.position))
        projector.rebuild()
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM projection").scalar() == 1
            assert connection.exec_driver_sql("SELECT count(*) FROM run_snapshot").scalar() == 2
    assert _projected(store) == _replayed(store)


def _forge(database: Database) -> None:
    def work(connection: Connection) -> None:
        forged = RunSnapshot.pending(RUN).to_json().replace("PENDING", "FAILED")
        connection.exec_driver_sql(f"UPDATE run_snapshot SET snapshot = '{forged}' WHERE run_id = '{RUN}'")

    database.write(work)


def test_two_rebuilds_do_not_mix(ledger_url: str) -> None:
    """R-EVT-8: a second rebuild is refused while the first holds its lease; one that died is begun anew."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger, closing(Database(ledger_url)) as database:
        store = ledger.run_store
        store.append_events(story())
        first = store.projector(batch=2)
        database.write(first._begin_building)
        assert first._take_batch(first._building(), keep=True)
        with pytest.raises(Conflict, match="being rebuilt"):
            store.projector().rebuild()
        clock.pass_seconds(5.1)
        store.projector().rebuild()
        with pytest.raises(Conflict, match="took over"):
            first._building()
        assert _projected(store) == _replayed(store)


def test_a_rebuild_goes_past_what_was_retired(ledger: Ledger) -> None:
    """R-EVT-5, R-EVT-8: positions whose events are gone hold no rebuild up."""
    store = ledger.run_store
    store.append_events(story())
    store.append_events(story(OTHER_RUN))
    store.projector().catch_up()
    store.retire_run(OTHER_RUN, actor="olga", reason="old")
    store.projector().rebuild()
    assert list(_projected(store)) == [RUN]
    store.retire_run(RUN, actor="olga", reason="old")
    store.projector().rebuild()
    assert _projected(store) == {}
    assert store.projector().catch_up().events == 0


def test_a_retired_run_does_not_come_back(ledger: Ledger, ledger_url: str) -> None:
    """R-EVT-5: what a projector had read of a run before it was retired is not written after."""
    store = ledger.run_store
    store.append_events(story())

    events = store.fetch_feed()
    with closing(Database(ledger_url)) as database:
        projector = Projector(database, FaultyFeed(store, late=events), RunSnapshots(), LedgerClock(Clock()))
        store.retire_run(RUN, actor="olga", reason="old")
        assert projector._take_batch(projector._active())
    assert _projected(store) == {}


def test_a_rebuild_waits_for_what_the_feed_holds_back(postgresql: PostgresqlServer) -> None:
    """R-EVT-8: an append that began late announces a position that others have passed; nothing is skipped."""
    url = postgresql.create_ledger()
    with open_ledger(url) as ledger, closing(Database(url)) as database:
        store = ledger.run_store
        store.append_events(story())
        store.projector().catch_up()
        projector = store.projector(batch=2)
        with database.engine.begin() as late:
            # As an appender does that read the last position before those were given out, and paused there.
            late.exec_driver_sql(
                "SELECT pg_advisory_xact_lock_shared("
                "('run_event_position_seq'::regclass::oid::bigint << 32) | 3)"
            )
            assert [each.position for each in store.fetch_feed()] == [1, 2, 3]
            rebuilding = threading.Thread(target=projector.rebuild)
            rebuilding.start()
            rebuilding.join(0.5)
            assert rebuilding.is_alive()
        rebuilding.join()
        assert _projected(store) == _replayed(store)
        assert store.projector().lag().events == 0


EVENT_COUNTS = Table(
    "event_count",
    MetaData(),
    Column("projection_id", BigInteger, primary_key=True),
    Column("event_type", Text, primary_key=True),
    Column("events", BigInteger, nullable=False),
)


class _EventCounts:
    """A projection that knows nothing of runs: how many events there are of each type."""

    name = "event_counts"

    def apply(self, connection: Connection, projection_id: int, events: Sequence[FeedEvent]) -> None:
        """Add to the counts."""
        before = self.read(connection, projection_id)
        connection.execute(delete(EVENT_COUNTS).where(EVENT_COUNTS.c.projection_id == projection_id))
        after = Counter(before) + Counter(each.event.event_type for each in events)
        for event_type, count in after.items():
            values = {"projection_id": projection_id, "event_type": event_type, "events": count}
            connection.execute(insert(EVENT_COUNTS).values(values))

    def discard(self, connection: Connection) -> None:
        """Remove the counts of projections that are no more."""
        there = select(tables.projection.c.id)
        connection.execute(delete(EVENT_COUNTS).where(EVENT_COUNTS.c.projection_id.not_in(there)))

    def read(self, connection: Connection, projection_id: int) -> dict[str, int]:
        """Return the counts."""
        query = select(EVENT_COUNTS).where(EVENT_COUNTS.c.projection_id == projection_id)
        return {row.event_type: row.events for row in connection.execute(query)}


def test_any_projection_will_do(ledger_url: str) -> None:
    """R-EVT-8: a name, apply and discard are enough, also for a rebuild, a daemon and a lag that is high."""
    clock = Clock()
    with open_ledger(ledger_url, clock=clock) as ledger, closing(Database(ledger_url)) as database:
        store = ledger.run_store
        database.write(EVENT_COUNTS.create)
        counts = _EventCounts()
        projector = Projector(database, store, counts, LedgerClock(clock), batch=3)

        def read() -> dict[str, int]:
            with database.read() as connection:
                state = projections.find(connection, counts.name)
                assert state is not None
                projected = select(func.count(EVENT_COUNTS.c.projection_id.distinct()))
                assert connection.execute(projected).scalar() == 1, "what was replaced is discarded"
                return counts.read(connection, state.id)

        store.append_events(story() + story(OTHER_RUN))
        projector.catch_up()
        expected = Counter(event.event_type for event in story() * 2)
        assert read() == expected
        projector.rebuild()
        assert read() == expected
        store.append_event(RunEvent.new(RUN, "Late"))
        clock.pass_seconds(60)
        looks = iter([False, True])
        projector.follow(lambda: next(looks))
        assert read() == expected | {"Late": 1}
        store.projector().catch_up()
        assert _projected(store) == _replayed(store)
