"""A ledger copied into another database: the same answers there, and it goes on (R-STATE-1, R-EVT-8)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from datetime import date
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from sealbook.errors import ConfigError, Corrupt
from sealbook.ledger import Ledger, migrate, open_ledger
from sealbook.ledger.copying import copy_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import metadata
from sealbook.model import Check, PartitionKey, RunEvent
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.status.archive import RunArchive
from sealbook.status.verify import Verified, verify_ledger
from tests.support.copying import copy_and_die
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id
from tests.support.pointers import load, seen

Make = Callable[[], str]

BAD = PartitionKey(KEY.source, KEY.customer_id, KEY.query_name, date(2026, 1, 3))


@pytest.fixture
def makers(tmp_path: Path, postgresql: PostgresqlServer) -> dict[str, Make]:
    """Makers of databases that are empty: without any table."""
    names = iter(range(100))
    return {
        "sqlite": lambda: f"sqlite:///{tmp_path / str(next(names))}.db",
        "postgresql": postgresql.create_database,
    }


@pytest.fixture(params=["sqlite to postgresql", "postgresql to sqlite", "postgresql to postgresql"])
def way(request: pytest.FixtureRequest, makers: dict[str, Make]) -> tuple[str, str]:
    """A filled ledger, and an empty database."""
    source, _, target = request.param.partition(" to ")
    url = makers[source]()
    fill(url)
    return url, makers[target]()


@pytest.fixture
def grown(makers: dict[str, Make]) -> tuple[str, str]:
    """A filled ledger on SQLite, and an empty database on PostgreSQL."""
    url = makers["sqlite"]()
    fill(url)
    return url, makers["postgresql"]()


def fill(url: str) -> None:
    """Judge, load, roll back, requeue, cut, fail, lease and retire a run."""
    migrate(url)
    with open_ledger(url) as ledger:
        check = Check("rows", False, 1, (3,), "ä")
        ledger.judge([accept(KEY, 1), accept(OTHER, 1), accept(KEY, 2), reject(BAD, 2, checks=(check,))])
        load(ledger)
        ledger.pointers.create_cut("before", note="ä\n")
        ledger.rollback(KEY, run_id(1), actor="ann", reason="wrong")
        ledger.requeue([BAD], actor="ann", reason="again")
        load(ledger)
        opened = ledger.open_run()
        ledger.runs.open_steps(Stage.EXTRACT, {opened})
        failed = PartitionFailed(
            key=KEY,
            run_id=opened,
            attempt="1",
            failed_stage=Stage.EXTRACT,
            error_class=ErrorClass.TRANSIENT,
            error="down",
        )
        ledger.runs.tell([failed])
        ledger.runs.cancel_run(opened, actor="ann", reason="enough")
        event = RunEvent.new("ours", "Note", event_data={"share": 0.5, "n": None})
        ledger.run_store.append_event(event)
        ledger.projector().catch_up()


def told(ledger: Ledger) -> dict[str, Any]:
    """Return what a ledger says."""
    return {
        "states": list(ledger.states()),
        "attempts": [ledger.attempts(key) for key in (KEY, OTHER, BAD)],
        "seen": [seen(ledger), seen(ledger, cut="before")],
        "feed": ledger.run_store.fetch_feed(),
        "snapshots": ledger.run_store.get_snapshot("ours"),
    }


def test_a_copy_says_the_same_and_goes_on(way: tuple[str, str], tmp_path: Path) -> None:
    source, target = way
    copied = copy_ledger(source, target)
    assert {each.table for each in copied} == set(metadata.tables)
    assert sum(each.rows for each in copied) > 30
    with open_ledger(source) as before, open_ledger(target) as after:
        assert told(after) == told(before)
        goes_on(after)
        assert [each.event for each in after.run_store.fetch_feed()][: len(before.run_store.fetch_feed())]
        last = before.run_store.fetch_feed()[-1].position
        assert all(each.position > last for each in after.run_store.fetch_feed(last, 1000))
        assert after.run_store.fetch_feed(last, 1000)
        verified = Verified()
        assert list(verify_ledger(after.reader, verified, RunArchive(str(tmp_path / "archive")))) == []
        assert verified.partitions


def goes_on(ledger: Ledger) -> None:
    """Do in a copy what needs numbers that nobody has had, and triggers."""
    newest = ledger.open_run()
    assert newest > run_id(2)
    ledger.judge([accept(KEY, 3), accept(OTHER, 3)])
    assert len(list(ledger.pointers.plan())) == 2, "no trigger has noted the change"
    load(ledger)
    assert set(seen(ledger).values()) == {run_id(3)}
    ledger.judge([reject(BAD, 3)])
    ledger.requeue([BAD], actor="ann", reason="once more")
    ledger.projector().catch_up()


def test_every_table_is_copied(grown: tuple[str, str]) -> None:
    source, target = grown
    copy_ledger(source, target)
    with closing(Database(target)) as database, database.read() as connection:
        assert set(inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}


def test_one_that_is_not_empty_is_refused(grown: tuple[str, str]) -> None:
    source, target = grown
    migrate(target)
    with open_ledger(target) as ledger:
        before = ledger.judge([accept(KEY, 7)])
        with pytest.raises(ConfigError, match="is not empty: it has rows in attempt"):
            copy_ledger(source, target)
        assert list(ledger.states()) == before


@pytest.mark.parametrize("table", ["attempt", "partition_state", "run_event", "work"])
def test_one_that_was_killed_goes_on(
    grown: tuple[str, str], table: str, makers: dict[str, Make], processes: ForkServerContext
) -> None:
    source, target = grown
    process = processes.Process(target=copy_and_die, args=(source, target, table))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    other = makers["sqlite"]()
    fill(other)
    with pytest.raises(ConfigError, match="has a part of another copy"):
        copy_ledger(other, target)
    copy_ledger(source, target)
    with open_ledger(source) as before, open_ledger(target) as after:
        assert told(after) == told(before)
        goes_on(after)


def test_a_ledger_that_is_written_to_meanwhile_is_not_copied(grown: tuple[str, str]) -> None:
    source, target = grown

    def write(name: str, _rows: int) -> None:
        if name == "work":
            with open_ledger(source) as ledger:
                ledger.judge([accept(KEY, 9)])

    with pytest.raises(ConfigError, match="was written to while it was copied"):
        copy_ledger(source, target, write)


def test_what_came_over_wrong_is_found(grown: tuple[str, str]) -> None:
    source, target = grown

    def damage(name: str, _rows: int) -> None:
        if name == "work":
            with closing(Database(target)) as database:
                database.write(
                    lambda connection: connection.execute(text("UPDATE attempt SET error_message = 'x'"))
                )

    with pytest.raises(Corrupt, match="attempt is another in"):
        copy_ledger(source, target, damage)


def test_a_backup_of_postgresql_is_restored_by_its_own_tools(
    makers: dict[str, Make], postgresql: PostgresqlServer
) -> None:
    """As docs/how-to/move-a-book.md has it."""
    source, target = makers["postgresql"](), makers["postgresql"]()
    fill(source)
    with open_ledger(source) as before:
        dumped = postgresql.run("pg_dump", source)
        postgresql.run("psql", "--quiet", "--set", "ON_ERROR_STOP=1", target, given=dumped)
        with open_ledger(target) as after:
            assert told(after) == told(before)
            goes_on(after)


def test_a_backup_of_sqlite_is_a_copy(makers: dict[str, Make]) -> None:
    source, backup = makers["sqlite"](), makers["sqlite"]()
    fill(source)
    copy_ledger(source, backup)
    with open_ledger(source) as before, open_ledger(backup) as after:
        assert told(after) == told(before)
        goes_on(after)
