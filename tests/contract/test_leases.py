"""Leases: one holder at a time, under a fence that only rises, on each database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.context import ForkServerContext
from multiprocessing.queues import Queue

import pytest

from sealbook.ledger.db import leases
from sealbook.ledger.db.engine import Database
from tests.support.ledger import PostgresqlServer

NOW = datetime(2026, 1, 1, 6, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    """A ledger's database."""
    opened = Database(ledger_url)
    yield opened
    opened.close()


def _claim(database: Database, holder: str, *names: str, at: datetime = NOW) -> dict[str, int]:
    return database.write(lambda c: leases.claim(c, names, holder, at, MINUTE))


def _heartbeat(database: Database, fences: dict[str, int], at: datetime) -> set[str]:
    return database.write(lambda c: leases.heartbeat(c, fences, at, MINUTE))


def _holds(database: Database, name: str, fence: int) -> bool:
    return database.write(lambda c: leases.holds(c, name, fence))


def test_what_is_free_is_claimed_once(database: Database) -> None:
    assert _claim(database, "ann", "a", "b") == {"a": 1, "b": 1}
    assert _claim(database, "bob", "b", "c") == {"c": 1}
    assert _claim(database, "ann") == {}
    assert [_holds(database, name, 1) for name in ("a", "b", "c", "d")] == [True, True, True, False]


def test_a_holder_renews_what_it_has_under_the_same_fence(database: Database) -> None:
    _claim(database, "ann", "a")
    assert _claim(database, "ann", "a", at=NOW + MINUTE) == {"a": 1}
    assert _claim(database, "bob", "a", at=NOW + 1.5 * MINUTE) == {}


def test_what_ran_out_is_claimed_under_a_higher_fence(database: Database) -> None:
    _claim(database, "ann", "a", "b")
    later = NOW + MINUTE + timedelta(microseconds=1)
    assert _claim(database, "bob", "a", at=later) == {"a": 2}
    assert not _holds(database, "a", 1)
    assert _heartbeat(database, {"a": 1, "b": 1}, later) == {"b"}, "nobody had claimed it yet"
    assert _claim(database, "bob", "b", at=later) == {}
    assert _claim(database, "ann", "b", at=later + 2 * MINUTE) == {"b": 2}, "it may be another of the name"


def test_a_released_lease_is_free_and_keeps_its_fence(database: Database) -> None:
    fences = _claim(database, "ann", "a", "b")
    database.write(lambda c: leases.release(c, fences))
    assert not _holds(database, "a", 1)
    assert _heartbeat(database, fences, NOW) == set()
    assert _claim(database, "bob", "a") == {"a": 2}
    database.write(lambda c: leases.release(c, fences))
    assert _holds(database, "a", 2), "only who holds it lets go of it"


def test_a_lease_is_found_without_being_claimed(database: Database) -> None:
    with database.read() as connection:
        assert leases.find(connection, "a") == leases.Lease("a", None, 0, None)
    _claim(database, "ann", "a")
    with database.read() as connection:
        found = leases.find(connection, "a")
    assert found == leases.Lease("a", "ann", 1, NOW + MINUTE)
    assert found.is_free_for("ann", NOW)
    assert not found.is_free_for("bob", NOW + MINUTE)
    assert found.is_free_for("bob", NOW + 2 * MINUTE)


def test_thousands_at_once(database: Database) -> None:
    names = [f"partition/{number}" for number in range(5_000)]
    fences = _claim(database, "ann", *names)
    assert fences == dict.fromkeys(names, 1)
    assert _heartbeat(database, fences, NOW) == set(names)
    database.write(lambda c: leases.release(c, fences))
    assert set(_claim(database, "bob", *names).values()) == {2}


def test_nobody_waits_for_a_claim_in_flight(postgresql: PostgresqlServer) -> None:
    """On PostgreSQL, neither for rows that are locked nor for names that are just being created."""
    database = Database(postgresql.create_ledger())
    _claim(database, "old", "held", at=NOW - 2 * MINUTE)
    with database.engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL lock_timeout = 1000")
        assert leases.claim(connection, ["held", "new"], "ann", NOW, MINUTE) == {"held": 2, "new": 1}
        with database.engine.begin() as other:
            other.exec_driver_sql("SET LOCAL lock_timeout = 1000")
            assert leases.claim(other, ["held", "new"], "bob", NOW, MINUTE) == {}
    assert _claim(database, "bob", "held", "new") == {}
    database.close()


def test_what_is_held_cannot_be_claimed_while_it_is_checked(postgresql: PostgresqlServer) -> None:
    """On PostgreSQL: a write under a fence and the claim that would end it do not overlap."""
    database = Database(postgresql.create_ledger())
    _claim(database, "ann", "a")
    with database.engine.begin() as connection:
        assert leases.holds(connection, "a", 1)
        assert _claim(database, "bob", "a", at=NOW + 2 * MINUTE) == {}
    assert _claim(database, "bob", "a", at=NOW + 2 * MINUTE) == {"a": 2}
    database.close()


NAMES = [f"name-{number}" for number in range(7)]
ROUNDS = 12


def test_threads_that_claim_at_once(database: Database) -> None:
    """No two hold a name at a time, and no fence is given twice."""
    held: dict[str, str] = {}
    seen: list[tuple[str, int]] = []
    guard = threading.Lock()

    def work(holder: str) -> None:
        for _ in range(ROUNDS):
            fences = _claim(database, holder, *NAMES)
            with guard:
                assert not held.keys() & fences.keys()
                held.update(dict.fromkeys(fences, holder))
                seen.extend(fences.items())
            with guard:
                for name in fences:
                    del held[name]
            database.write(partial(leases.release, fences=fences))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, "abcdef"))
    _check_fences(seen)


def _check_fences(seen: list[tuple[str, int]]) -> None:
    assert len(set(seen)) == len(seen)
    for name in NAMES:
        fences = sorted(fence for each, fence in seen if each == name)
        assert fences == list(range(1, len(fences) + 1)), "each claim raises it by one"


def test_processes_that_claim_at_once(ledger_url: str, processes: ForkServerContext) -> None:
    """The same for processes: every claim has a fence of its own."""
    results: Queue[list[tuple[str, int]]] = processes.Queue()
    workers = [processes.Process(target=_work, args=(ledger_url, holder, results)) for holder in "abcd"]
    for worker in workers:
        worker.start()
    seen = [claim for _ in workers for claim in results.get(timeout=60)]
    for worker in workers:
        worker.join()
    assert seen
    _check_fences(seen)


def _work(url: str, holder: str, results: Queue[list[tuple[str, int]]]) -> None:
    database = Database(url)
    seen: list[tuple[str, int]] = []
    for _ in range(ROUNDS):
        fences = _claim(database, holder, *NAMES)
        seen.extend(fences.items())
        database.write(partial(leases.release, fences=fences))
    results.put(seen)
    database.close()
