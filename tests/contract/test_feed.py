"""The feed skips nothing that commits late, and followers are woken in time (R-EVT-8)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.clock import utc_now
from sealbook.errors import InvalidInput
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.append import append
from sealbook.ledger.events.feed import fetch_feed
from sealbook.model.events import RunEvent
from tests.support.ledger import PostgresqlServer

PATIENCE = 30.0
"""Far beyond what any of this takes; it ends a test that would else hang."""


def _event(run: str, step: str = "x") -> RunEvent:
    return RunEvent.new(run, "StepStarted", step)


def _runs(ledger: Ledger, after: int = 0) -> list[str]:
    return [each.event.run_id for each in ledger.run_store.fetch_feed(after)]


@pytest.fixture
def url(postgresql: PostgresqlServer) -> str:
    """A ledger on PostgreSQL, where writers work at once."""
    return postgresql.create_ledger()


@pytest.fixture
def book(url: str) -> Iterator[Ledger]:
    """The same, opened."""
    with open_ledger(url) as ledger:
        yield ledger


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """The same, for transactions that stay open."""
    opened = Database(url)
    yield opened
    opened.close()


def test_what_commits_late_is_waited_for(book: Ledger, database: Database) -> None:
    """R-EVT-8: positions after those of an open transaction are not shown until it has ended."""
    book.run_store.append_event(_event("first"))
    with database.engine.connect() as late:
        append(late, [_event("late")], utc_now())
        book.run_store.append_event(_event("quick"))
        assert _runs(book) == ["first"]
        late.commit()
    assert _runs(book) == ["first", "late", "quick"]


def test_a_run_is_locked_until_commit(book: Ledger, database: Database, url: str) -> None:
    """R-EVT-2: a second append of a run waits for the first, and comes after it."""
    book.run_store.append_event(_event("run", "before"))
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    with ThreadPoolExecutor(1) as thread, psycopg.connect(url, autocommit=True) as admin:
        with database.engine.connect() as first:
            append(first, [_event("run", "first")], utc_now())
            second = thread.submit(
                book.run_store.append_events, [_event("run", "second"), _event("run", "first")]
            )
            while admin.execute(waiting).fetchone() == (0,):
                time.sleep(0.005)
            first.commit()
        assert [(r.run_seq, r.persisted) for r in second.result(PATIENCE)] == [(3, True), (2, False)]


def test_what_is_taken_back_holds_nothing_up(book: Ledger, database: Database) -> None:
    """R-EVT-8: neither a rollback nor a lost connection leaves the feed waiting."""
    with database.engine.connect() as connection:
        append(connection, [_event("undone")], utc_now())
        book.run_store.append_event(_event("one"))
        assert _runs(book) == []
        connection.rollback()
        assert _runs(book) == ["one"]
        append(connection, [_event("killed")], utc_now())
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        book.run_store.append_event(_event("two"))
        with psycopg.connect(book_url(database), autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        assert _runs(book) == ["one", "two"]
        connection.invalidate()


def book_url(database: Database) -> str:
    """Return a database's URL as the driver takes it."""
    return database.url.set(drivername="postgresql").render_as_string(hide_password=False)


def test_unrelated_transactions_hold_nothing_up(book: Ledger, database: Database) -> None:
    """R-EVT-8: a transaction that appends nothing may stay open as long as it likes."""
    with database.engine.connect() as idle:
        idle.exec_driver_sql("CREATE TABLE unrelated ()")
        book.run_store.append_event(_event("one"))
        assert _runs(book) == ["one"]


def test_another_ledger_in_the_database_holds_nothing_up(postgresql: PostgresqlServer) -> None:
    """R-EVT-8: ledgers in schemas of one database do not wait for each other."""
    url = postgresql.create_database()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA one")
        admin.execute("CREATE SCHEMA two")
    urls = [f"{url}&options=-csearch_path%3D{schema}" for schema in ("one", "two")]
    with open_ledger(urls[0], migrate=True) as one, open_ledger(urls[1], migrate=True) as two:
        database = Database(urls[0])
        with database.engine.connect() as late:
            append(late, [_event("late")], utc_now())
            two.run_store.append_event(_event("quick"))
            assert _runs(two) == ["quick"]
            assert _runs(one) == []
        database.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["append", "commit", "rollback", "read"]))))
def test_any_interleaving_of_writers(book: Ledger, database: Database, moves: list[tuple[int, str]]) -> None:
    """R-EVT-8: in whatever order writers begin and end, a reader sees all that was committed, and once."""
    run = f"{time.monotonic_ns()}"
    position = book.run_store.backlog().end
    seen: list[str] = []
    committed: set[str] = set()
    waiting: dict[int, list[str]] = {}
    connections = [database.engine.connect() for _ in range(4)]

    def read() -> int:
        page = book.run_store.fetch_feed(position)
        seen.extend(each.event.run_id for each in page)
        return page[-1].position if page else position

    for number, (writer, move) in enumerate(moves):
        if move == "append":
            name = f"{run}-{writer}-{number}"
            append(connections[writer], [_event(name)], utc_now())
            waiting.setdefault(writer, []).append(name)
        elif move == "commit":
            connections[writer].commit()
            committed.update(waiting.pop(writer, []))
        elif move == "rollback":
            connections[writer].rollback()
            waiting.pop(writer, None)
        else:
            position = read()
            assert set(seen) <= committed
    for connection in connections:
        connection.close()
    position = read()
    assert sorted(seen) == sorted(committed)


def test_positions_are_told_from_their_low_bits(book: Ledger, database: Database) -> None:
    """R-EVT-8: locks carry 32 bits of a position; the feed is right where those bits wrap round."""
    with database.engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT setval('run_event_position_seq', {2**32 - 2})")
    with database.engine.connect() as late, database.engine.connect() as later:
        append(late, [_event("late")], utc_now())
        append(later, [_event("later"), _event("later", "y"), _event("later", "z")], utc_now())
        book.run_store.append_event(_event("quick"))
        assert _runs(book) == []
        late.commit()
        assert _runs(book) == ["late"]
        later.commit()
    assert _runs(book) == ["late", "later", "later", "later", "quick"]


def test_a_follower_is_woken_while_it_sleeps(ledger: Ledger, ledger_url: str) -> None:
    """R-EVT-8: events appended one by one, from another connection, arrive each by itself and in order."""
    with open_ledger(ledger_url) as writer:
        feed = ledger.run_store.follow(patience=PATIENCE)
        for number in range(12):
            appending = threading.Timer(
                0.03 * (number % 3), writer.run_store.append_event, [_event("run", f"{number}")]
            )
            appending.start()
            assert next(feed).event.step_id == f"{number}"
            appending.join()
        feed.close()  # type: ignore[attr-defined]


def test_following_ends_when_patience_does(ledger: Ledger) -> None:
    """A follower whose patience ends gives up, and goes on from a position."""
    ledger.run_store.append_events([_event("a"), _event("b"), _event("a", "y")])
    followed = list(ledger.run_store.follow(patience=0.01))
    assert followed == ledger.run_store.fetch_feed()
    assert list(ledger.run_store.follow(followed[1].position, patience=0.01)) == followed[2:]
    assert list(ledger.run_store.follow_run("a", patience=0.01)) == ledger.run_store.fetch_events("a")
    assert list(ledger.run_store.follow_run("a", 2, patience=0.01)) == []


def test_a_sleeping_follower_wakes_for_what_was_in_flight(book: Ledger, database: Database) -> None:
    """R-EVT-8: an append that began before the follower went to sleep, and so did not see it, is found."""
    with database.engine.connect() as late:
        append(late, [_event("late")], utc_now())
        committing = threading.Timer(0.2, late.commit)
        committing.start()
        assert next(book.run_store.follow(patience=PATIENCE)).event.run_id == "late"
        committing.join()


def test_nobody_is_notified_while_nobody_sleeps(book: Ledger, url: str) -> None:
    """A notification makes commits wait for each other: it is sent to those who sleep, and only then."""
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute("LISTEN run_event")
        book.run_store.append_event(_event("one"))
        assert list(listener.notifies(timeout=0.1)) == []
        with book.run_store.watch() as watch:
            watch.rest(found=False, at_most=PATIENCE)  # takes the wake-up lock, for one more look
            book.run_store.append_event(_event("two"))
            assert len(list(listener.notifies(timeout=PATIENCE, stop_after=1))) == 1
            watch.rest(found=False, at_most=PATIENCE)  # is woken by it
            book.run_store.append_event(_event("three"))
            assert list(listener.notifies(timeout=0.1)) == []


def test_a_follower_outlives_its_connection(book: Ledger, url: str) -> None:
    """Being woken is a convenience: a follower whose connections were cut looks again by itself."""
    feed = book.run_store.follow(patience=PATIENCE)
    book.run_store.append_event(_event("one"))
    assert next(feed).event.run_id == "one"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    book.run_store.append_event(_event("two"))  # appended again on a new connection
    assert next(feed).event.run_id == "two"
    feed.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda store: store.fetch_feed(-1), "after"),
        (lambda store: store.fetch_feed(0, 0), "limit"),
        (lambda store: store.fetch_feed(True), "after"),
        (lambda store: store.fetch_events("r", 1.5), "after_seq"),
        (lambda store: store.fetch_events("r", 0, -1), "limit"),
        (lambda store: store.fetch_events("a\0b"), "run_id"),
        (lambda store: store.get_snapshot(7), "run_id"),
        (lambda store: store.list_runs(2**64), "limit"),
        (lambda store: store.backlog(None), "after"),
    ],
)
def test_what_no_correct_caller_asks_is_refused(ledger: Ledger, call: object, field: str) -> None:
    """The error names the field, and is not one of the driver's."""
    with pytest.raises(InvalidInput) as refused:
        call(ledger.run_store)  # type: ignore[operator]
    assert refused.value.field == field


def test_feed_of_an_empty_ledger(ledger_url: str) -> None:
    """No event, no trouble."""
    database = Database(ledger_url)
    assert fetch_feed(database, 0, 10) == []
    database.close()
