"""Appending inside a transaction: conflicts, the time of persistence, locks (R-EVT-4, R-EVT-9, R-EVT-10)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection

from sealbook.clock import utc_now
from sealbook.errors import Conflict
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.append import append, append_new, lock_runs
from sealbook.model.events import RunEvent
from sealbook.testing.run_store_contract import OTHER_RUN, RUN
from tests.support.event_stores import Clock
from tests.support.ledger import KEY, accept, reject, run_id, until_it_waits
from tests.support.pointers import load, staged

PARTITION = "demo/Acme/q/2026-01-01"


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    """The ledger's database, for transactions of a caller."""
    opened = Database(ledger_url)
    yield opened
    opened.close()


def _sealed(records: int, partition: str = PARTITION) -> RunEvent:
    data = {"recordCount": records}
    return RunEvent.new(RUN, "PartitionSealed", "extract/x", event_data=data, partition=partition)


def test_results_come_in_the_order_given(ledger: Ledger, database: Database) -> None:
    """R-EVT-4: also where events of runs are mixed, and some are known."""
    ledger.run_store.append_event(_sealed(1))
    events = [RunEvent.new(run, kind) for kind in ("A", "B") for run in (RUN, OTHER_RUN)]
    results = database.write(lambda c: append(c, [*events, _sealed(1), events[0], _sealed(2)], utc_now()))
    assert [(each.run_seq, each.persisted, each.conflict) for each in results] == [
        (2, True, False), (1, True, False), (3, True, False), (2, True, False),
        (1, False, False), (2, False, False), (1, False, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "other", [_sealed(2), _sealed(1, "demo/Acme/q/2026-01-02")], ids=["data", "partition"]
)
def test_r_evt_10_a_key_taken_by_another_payload_is_a_conflict(
    ledger: Ledger, database: Database, other: RunEvent
) -> None:
    """It names run, step and event type, and nothing of the transaction is written."""
    ledger.run_store.append_event(_sealed(1))
    assert ledger.run_store.append_event(other).conflict
    new = RunEvent.new(OTHER_RUN, "RunStarted")
    with pytest.raises(Conflict, match=f"run {RUN} has a PartitionSealed of step extract/x") as refused:
        database.write(lambda c: append_new(c, [new, other], utc_now()))
    assert refused.value.remedy
    assert ledger.run_store.fetch_events(OTHER_RUN) == []
    results = database.write(lambda c: append_new(c, [new, _sealed(1)], utc_now()))
    assert [(each.run_seq, each.idempotent) for each in results] == [(1, False), (1, True)]


def test_r_evt_10_two_payloads_in_one_call_are_a_conflict(ledger: Ledger, database: Database) -> None:
    with pytest.raises(Conflict):
        database.write(lambda c: append_new(c, [_sealed(1), _sealed(2)], utc_now()))
    assert ledger.run_store.fetch_events(RUN) == []


@pytest.mark.parametrize("data", [None, False, 0, 1.0, "text", [], [None], {}])
def test_r_evt_3_any_json_value_is_stored_and_compared(ledger: Ledger, data: object) -> None:
    store = ledger.run_store
    event = RunEvent.new(RUN, "T", event_data=data)
    store.append_event(event)
    (found,) = store.fetch_events(RUN)
    assert (found.event_data, type(found.event_data)) == (data, type(data))
    assert not store.append_event(event).conflict
    assert store.append_event(RunEvent.new(RUN, "T", event_data=[data])).conflict
    assert store.projector().catch_up().events == 0


def test_r_evt_3_a_key_of_another_engine_is_one_of_its_run(ledger: Ledger) -> None:
    store = ledger.run_store
    events = [RunEvent(run_id=run, event_type="T", idempotency_key="abc123") for run in (RUN, OTHER_RUN)]
    assert [each.persisted for each in store.append_events(events)] == [True, True]
    again = RunEvent(run_id=RUN, event_type="U", idempotency_key="abc123", event_data={"x": 1})
    result = store.append_event(again)
    assert (result.run_seq, result.idempotent, result.conflict) == (1, True, True)
    assert [each.idempotency_key for each in store.fetch_events(RUN)] == ["abc123"]


def _nothing(ledger: Ledger) -> None:
    """Nothing has to be there."""


def _rejected(ledger: Ledger) -> None:
    ledger.judge([reject(KEY, 1)])


def _accepted(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1)])


def _published(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1), accept(KEY, 2)])
    load(ledger)


def _demoted(ledger: Ledger) -> None:
    _accepted(ledger)
    load(ledger)
    ledger.judge([reject(KEY, 1, again="x")])


WHO: dict[str, Any] = {"actor": "ann", "reason": "to try it"}
DOORS: dict[str, tuple[Callable[[Ledger], object], Callable[[Ledger], object]]] = {
    "event": (
        _nothing,
        lambda ledger: ledger.run_store.append_event(RunEvent.new(run_id(1), "PartitionSealed")),
    ),
    "verdict": (_nothing, lambda ledger: ledger.judge([accept(KEY, 1)])),
    "requeue": (_rejected, lambda ledger: ledger.requeue([KEY], **WHO)),
    "publication": (_accepted, lambda ledger: ledger.pointers.swap([staged(KEY, 1)])),
    "hiding": (_demoted, lambda ledger: ledger.pointers.hide()),
    "hiding for a cut": (_demoted, lambda ledger: ledger.pointers.create_cut()),
    "rollback": (_published, lambda ledger: ledger.rollback(KEY, run_id(1), **WHO)),
}
"""What must be there before an event of run 1 is appended, and who appends it."""


@pytest.mark.parametrize("door", DOORS)
def test_r_evt_9_persisted_at_is_when_the_locks_were_held(
    ledger_url: str, database: Database, door: str
) -> None:
    """The clock is read after the wait for another appender of the run, not before, whatever is told."""
    clock = Clock()
    prepare, act = DOORS[door]
    with open_ledger(ledger_url, clock=clock) as ledger:
        prepare(ledger)
        appender = threading.Thread(target=act, args=[ledger])

        def hold(connection: Connection) -> None:
            lock_runs(connection, [run_id(1)])
            appender.start()
            until_it_waits(database, appender)
            clock.pass_seconds(60)

        before = clock.now
        database.write(hold)
        appender.join()
        event = list(ledger.run_store.fetch_events(run_id(1)))[-1]
    assert event.persisted_at is not None
    assert (event.persisted_at - before).total_seconds() == 60


def test_locked_runs_are_appended_to_in_any_order(database: Database, ledger: Ledger) -> None:
    """Two that lock the same runs, named in opposite orders, never wait for each other in a circle."""
    runs = [f"run-{number}" for number in range(20)]

    def work(order: list[str]) -> None:
        for turn in range(5):
            events = [RunEvent.new(run, "T", f"{order[0]}-{turn}") for run in order]

            def both(connection: Connection, events: list[RunEvent] = events) -> None:
                lock_runs(connection, order)
                append(connection, events, utc_now())

            database.write(both)

    threads = [threading.Thread(target=work, args=(order,)) for order in (runs, runs[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(ledger.run_store.fetch_events(run)) for run in runs} == {10}
