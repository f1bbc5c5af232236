"""Connections lost, cut, refused or shared: the outcome is right, or said to be unknown (R-STATE-6)."""

from __future__ import annotations

import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from select import select
from typing import Any, Literal
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Connection, event, make_url

from sealbook import stopping
from sealbook.errors import (
    ConfigError,
    Conflict,
    IllegalMove,
    SealbookError,
    Transient,
    UnknownOutcome,
)
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db import connecting, engine
from sealbook.model import PartitionKey, RunEvent, Status
from sealbook.stopping import Stopped, stoppable
from tests.support.killing import wait_until
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id


@pytest.fixture
def url(postgresql: PostgresqlServer) -> str:
    """A migrated ledger on PostgreSQL."""
    return postgresql.create_ledger()


def execute(url: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run a statement on a connection of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


def others(url: str, where: str = "true") -> int:
    """Count the other connections to a database."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        f" AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND {where}"
    )
    return int(execute(url, query)[0][0])


def terminate(url: str, connection: Connection) -> None:
    """End the server's side of a connection, and wait for its end."""
    driver: Any = connection.connection.dbapi_connection
    assert driver is not None
    pid = driver.info.backend_pid
    execute(url, "SELECT pg_terminate_backend(%s)", pid)
    wait_until(lambda: others(url, f"pid = {pid}") == 0)


@contextmanager
def at_statement(ledger: Ledger, number: int, act: Callable[[Connection], object]) -> Iterator[list[str]]:
    """Act once, before the statement of that number, and yield the statements as they are executed."""
    executed: list[str] = []

    def before(connection: Connection, _cursor: object, statement: str, *_rest: object) -> None:
        executed.append(statement)
        if len(executed) == number:
            act(connection)

    event.listen(ledger._database.engine, "before_cursor_execute", before)
    try:
        yield executed
    finally:
        event.remove(ledger._database.engine, "before_cursor_execute", before)


def test_a_connection_lost_before_commit_is_replaced(url: str) -> None:
    """R-STATE-6: whatever was under way left no trace, so it is done again; each verdict counts once."""
    with open_ledger(url) as ledger:
        failed = replace(OTHER, logical_date=OTHER.logical_date - timedelta(days=30))
        ledger.judge([accept(KEY, 1), reject(failed, 1)])  # from here on there is open work to look at
        with at_statement(ledger, 0, lambda _: None) as executed:
            ledger.judge([accept(KEY, 2), reject(OTHER, 2)])
        in_all = len(executed)
        for number in range(1, in_all + 1):
            run = number + 2
            new = replace(OTHER, logical_date=OTHER.logical_date + timedelta(days=number))
            with at_statement(ledger, number, lambda connection: terminate(url, connection)) as executed:
                states = ledger.judge([accept(KEY, run), reject(new, run)])
            assert len(executed) == number + in_all
            assert [state.attempt_count for state in states] == [run, 1]
            assert states == [ledger.state(KEY), ledger.state(new)]
            assert [len(ledger.attempts(key)) for key in (KEY, new)] == [run, 1]


def test_what_the_database_refuses_is_not_tried_again(ledger: Ledger) -> None:
    tried = []

    def work(connection: Connection) -> None:
        tried.append(connection)
        connection.exec_driver_sql("DELETE FROM nowhere")

    with pytest.raises(SealbookError):
        ledger._database.write(work)
    assert len(tried) == 1


def test_a_connection_lost_while_waiting_for_a_lock_is_replaced(url: str) -> None:
    """R-STATE-6: the wait begins anew, and ends as it should."""
    with open_ledger(url) as ledger, ThreadPoolExecutor(1) as threads:
        ledger.judge([accept(KEY, 1)])
        with psycopg.connect(url) as blocker:
            blocker.execute("SELECT * FROM partition_state FOR UPDATE")
            judging = threads.submit(ledger.judge, [accept(KEY, 2)])
            waits = "wait_event_type = 'Lock'"
            wait_until(lambda: others(url, waits))
            pids = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            [(first,)] = execute(url, pids)
            execute(url, "SELECT pg_terminate_backend(%s)", first)
            wait_until(lambda: others(url, f"{waits} AND pid <> {first}"))
        assert judging.result()[0].attempt_count == 2


def test_idle_connections_that_died_are_replaced(url: str) -> None:
    """A restart of the server between two calls goes unnoticed."""
    with open_ledger(url) as ledger:
        ledger.judge([accept(KEY, 1)])
        kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        execute(url, f"{kill} AND pid <> pg_backend_pid()")
        wait_until(lambda: others(url) == 0)
        assert ledger.state(KEY).attempt_count == 1
        execute(url, f"{kill} AND pid <> pg_backend_pid()")
        wait_until(lambda: others(url) == 0)
        assert ledger.judge([accept(KEY, 2)])[0].attempt_count == 2


def test_an_error_of_ours_survives_a_lost_connection(url: str) -> None:
    """A Conflict found just before the connection died is found again, and raised as what it is."""
    with open_ledger(url) as ledger:
        lost: list[bool] = []

        def work(connection: Connection) -> None:
            if not lost:
                terminate(url, connection)
                lost.append(True)
            raise Conflict("ours")

        with pytest.raises(Conflict, match="ours"):
            ledger._database.write(work)
        assert ledger.judge([accept(KEY)])[0].attempt_count == 1


def test_a_connection_that_is_lost_each_time_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transient, after as many tries as there are pauses, and one more."""
    monkeypatch.setattr(engine, "_PAUSES_SECONDS", (0.01, 0.01))
    tries = count(1)
    with open_ledger(url) as ledger:

        def work(connection: Connection) -> None:
            next(tries)
            terminate(url, connection)
            connection.exec_driver_sql("SELECT 1")

        with pytest.raises(Transient, match="did not answer"):
            ledger._database.write(work)
        assert next(tries) == 4
        assert ledger.judge([accept(KEY)])[0].attempt_count == 1


def test_a_deadlock_with_somebody_else_is_retried(url: str) -> None:
    """Our own writers cannot deadlock; whoever locks rows by hand can, and is let past."""
    with open_ledger(url) as ledger, ThreadPoolExecutor(1) as threads:
        ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
        lock = "SELECT * FROM partition_state WHERE logical_date = %s FOR UPDATE"
        with psycopg.connect(url) as stranger:
            stranger.execute("SET deadlock_timeout = '1min'")  # so that it is the ledger that notices
            stranger.execute(lock, [OTHER.logical_date])
            judging = threads.submit(ledger.judge, [accept(OTHER, 2), accept(KEY, 2)])
            wait_until(lambda: others(url, "wait_event_type = 'Lock'"))
            stranger.execute(lock, [KEY.logical_date])
        assert [state.attempt_count for state in judging.result()] == [2, 2]


class CommitCutter:
    """A proxy to PostgreSQL that can drop the client's connection at a COMMIT, forwarded or not."""

    def __init__(self, server: Path) -> None:
        self.server = server
        self.cut: Literal["before", "after"] | None = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self.threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # closed
                return
            self._start(self._forward, client)

    def _forward(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self.server))
            while True:
                ready, _, _ = select([client, server], [], [])
                for source in ready:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if source is client and self.cut and b"COMMIT\0" in data:
                        if self.cut == "after":
                            server.sendall(data)
                            server.recv(1 << 16)  # it has committed once it answers
                        self.cut = None
                        return
                    (server if source is client else client).sendall(data)


@pytest.fixture
def cutter(url: str) -> Iterator[CommitCutter]:
    folder = make_url(url).query["host"]
    with closing(CommitCutter(Path(str(folder)) / ".s.PGSQL.5432")) as proxy:
        yield proxy


@pytest.fixture
def through_proxy(url: str, cutter: CommitCutter) -> Iterator[Ledger]:
    """The ledger as it is reached through the proxy."""
    database = make_url(url).database
    proxied = f"postgresql://postgres@127.0.0.1:{cutter.port}/{database}?sslmode=disable&gssencmode=disable"
    with open_ledger(proxied) as ledger:
        yield ledger


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_connection_lost_during_commit_is_an_unknown_outcome(
    url: str, cutter: CommitCutter, through_proxy: Ledger, cut: Literal["before", "after"]
) -> None:
    """R-STATE-6: it is not tried again behind the caller's back; delivering it again converges."""
    verdicts = [accept(KEY, 2), reject(OTHER, 2)]
    through_proxy.judge([accept(KEY, 1)])
    cutter.cut = cut
    with pytest.raises(UnknownOutcome, match="lost during commit") as unknown:
        through_proxy.judge(verdicts)
    assert "again" in str(unknown.value.remedy)
    wait_until(lambda: others(url, "state <> 'idle'") == 0)
    with open_ledger(url) as ledger:
        assert ledger.state(KEY).attempt_count == (1 if cut == "before" else 2)
        assert len(ledger.attempts(OTHER)) == (0 if cut == "before" else 1)
    again = through_proxy.judge(verdicts)
    assert [state.attempt_count for state in again] == [2, 1]
    assert through_proxy.judge(verdicts) == again
    assert [len(through_proxy.attempts(key)) for key in (KEY, OTHER)] == [2, 1]


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_control_action_lost_during_commit_is_looked_up(
    cutter: CommitCutter, through_proxy: Ledger, cut: Literal["before", "after"]
) -> None:
    """The remedy holds: the state tells whether it happened, and if it did, asking again is refused."""
    through_proxy.judge([reject(KEY)])
    cutter.cut = cut
    with pytest.raises(UnknownOutcome, match="lost during commit") as unknown:
        through_proxy.requeue([KEY], actor="ann", reason="again")
    assert "sealbook state inspect" in str(unknown.value.remedy)
    if cut == "before":
        assert through_proxy.state(KEY).status is Status.FAILED
        through_proxy.requeue([KEY], actor="ann", reason="again")
    else:
        with pytest.raises(IllegalMove):
            through_proxy.requeue([KEY], actor="ann", reason="again")
    assert through_proxy.state(KEY).status is Status.PENDING


@pytest.mark.parametrize("cut", ["before", "after"])
def test_an_append_lost_during_commit_is_repeated(
    cutter: CommitCutter, through_proxy: Ledger, cut: Literal["before", "after"]
) -> None:
    """R-EVT-4: an event appended again counts once, so nobody needs to hear of the connection."""
    store = through_proxy.run_store
    store.append_event(RunEvent.new("run", "RunQueued"))
    cutter.cut = cut
    result = store.append_event(RunEvent.new("run", "RunStarted"))
    assert (result.run_seq, result.idempotent, result.conflict) == (2, cut == "after", False)
    assert [event.event_type for event in store.fetch_events("run")] == ["RunQueued", "RunStarted"]


def test_a_server_that_is_not_there() -> None:
    """Transient, with a remedy, and without the password anywhere."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]  # free again below, and hardly taken so soon
    started = f"postgresql://ann:s3cret@127.0.0.1:{port}/book?password=s3cret"
    with pytest.raises(Transient, match="did not answer") as refused:
        open_ledger(started)
    assert refused.value.remedy
    error: BaseException | None = refused.value
    while error is not None:
        assert "s3cret" not in f"{error!r} {error} {getattr(error, 'remedy', '')}"
        error = error.__cause__


@contextmanager
def with_password(server: PostgresqlServer, role: str) -> Iterator[None]:
    """Have a role asked for its password, which is `right`, while the block lasts."""
    rules = Path(make_url(server.uri).query["host"]) / "pg_hba.conf"  # type: ignore[arg-type]
    before = rules.read_text()
    server.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'right'")
    rules.write_text(f"local all {role} scram-sha-256\n{before}")
    server.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        rules.write_text(before)
        server.execute("SELECT pg_reload_conf()")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"database": "missing"}, 'database "missing" does not exist'),
        ({"username": "nobody"}, 'role "nobody" does not exist'),
        ({"username": "locked", "password": "wr0ng"}, 'password authentication failed for user "locked"'),
        ({"username": "locked"}, "no password supplied"),
    ],
    ids=["database", "user", "password", "no password"],
)
def test_a_server_that_refuses_the_connection(
    url: str, postgresql: PostgresqlServer, changed: dict[str, str], said: str
) -> None:
    """It did answer: what is wrong is in the URL, and the server's own words say what, without a password."""
    with ExitStack() as stack:
        if changed.get("username") == "locked":
            stack.enter_context(with_password(postgresql, role := f"locked_{uuid4().hex}"))
            changed, said = {**changed, "username": role}, said.replace("locked", role)
        with pytest.raises(ConfigError, match="answered, and refused the connection") as refused:
            open_ledger(make_url(url).set(**changed).render_as_string(hide_password=False))  # type: ignore[arg-type]
    assert said in str(refused.value)
    assert "database" in str(refused.value.remedy)
    assert "wr0ng" not in str(refused.value)


def test_a_server_that_refuses_a_later_connection(url: str, postgresql: PostgresqlServer) -> None:
    """The URL was right when the ledger was opened: what is wrong now may pass."""
    database = make_url(url).database
    with closing(open_ledger(url)) as ledger:
        ledger._database.engine.dispose()
        postgresql.execute(f"ALTER DATABASE {database} RENAME TO {database}_moved")
        with pytest.raises(Transient, match="did not answer"):
            ledger.state(KEY)
        postgresql.execute(f"ALTER DATABASE {database}_moved RENAME TO {database}")
        assert ledger.state(KEY).status is Status.PENDING


def test_all_connections_in_use(url: str) -> None:
    """Transient, not the pool's own error."""
    days = [date(2000, 1, 1) + timedelta(days=number) for number in range(2_100)]
    with open_ledger(url) as ledger, ExitStack() as open_streams:
        ledger.judge([accept(PartitionKey("demo", "Acme", "q", day)) for day in days])
        pool: Any = ledger._database.engine.pool
        pool._timeout = 0.05
        streams = [ledger.states() for _ in range(15)]
        open_streams.callback(streams.clear)
        for stream in streams:
            next(stream)
        with pytest.raises(Transient, match="are in use"):
            ledger.state(KEY)
        with pytest.raises(Transient, match="are in use"):
            ledger.judge([accept(KEY)])
        del stream
        streams.clear()
        assert ledger.state(KEY).status is Status.PENDING


def test_sqlite_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the wait, which is long, it is Transient; reading goes on meanwhile."""
    monkeypatch.setattr(connecting, "SQLITE_BUSY_SECONDS", 0.1)
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        ledger.judge([accept(KEY)])
        with closing(sqlite3.connect(tmp_path / "book.db", isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            with pytest.raises(Transient, match="locked"):
                ledger.judge([accept(KEY, 2)])
            assert ledger.state(KEY).attempt_count == 1
            writer.execute("ROLLBACK")
        assert ledger.judge([accept(KEY, 2)])[0].attempt_count == 2


def test_a_signal_stops_the_wait_for_sqlites_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for the other writer, which in this test never ends."""
    tries = count(1)
    begin = connecting._begin_immediate
    main = threading.get_ident()

    def try_to_begin(connection: Connection) -> None:
        if next(tries) == 2:  # SQLite waits a second time then: a signal is handled in between
            threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGTERM)).start()
        begin(connection)

    with (
        open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger,
        closing(sqlite3.connect(tmp_path / "book.db", isolation_level=None)) as writer,
    ):
        writer.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(connecting, "SQLITE_BUSY_SECONDS", 60)
        monkeypatch.setattr(connecting, "_begin_immediate", try_to_begin)
        monkeypatch.setattr(stopping, "_outliving", [])  # such as the Java of other tests
        with stoppable() as stop, pytest.raises(Stopped):
            ledger.judge([accept(KEY)])
        assert stop.exit_code == 143
        writer.execute("ROLLBACK")
        assert ledger.judge([accept(KEY)])[0].attempt_count == 1


@pytest.fixture(params=["sqlite", "in memory", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """One ledger object for many threads."""
    if request.param == "postgresql":
        where = request.getfixturevalue("url")
    else:
        where = "sqlite://" if request.param == "in memory" else f"sqlite:///{tmp_path}/book.db"
    with open_ledger(where) as ledger:
        yield ledger


def test_threads_share_a_ledger(shared: Ledger) -> None:
    """R-STATE-6: more threads than a pool has connections, judging and reading the same keys."""
    keys = [PartitionKey("demo", "Acme", "q", date(2026, 1, day)) for day in range(1, 29)]

    def work(run: int) -> int:
        shared.judge([accept(key, run) for key in (keys if run % 2 else reversed(keys))])
        return sum(state.attempt_count > 0 for state in shared.states())

    with ThreadPoolExecutor(20) as threads:
        assert list(threads.map(work, range(1, 21))) == [len(keys)] * 20
    for state in shared.states():
        assert (state.attempt_count, state.current_run_id) == (20, run_id(20))
        assert [attempt.attempt for attempt in shared.attempts(state.key)] == list(range(1, 21))
