"""Short writes: their connections are kept for the next write, but only while they can be trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealbook.ledger.db.driver import Driver, write_idempotent
from sealbook.ledger.db.engine import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database in a file, with one kept connection."""
    database = Database(f"sqlite:///{tmp_path}/book.db")
    write_idempotent(database, lambda driver: driver.rows("CREATE TABLE example (id INTEGER)", ()))
    yield database
    database.close()


def _insert(driver: Driver) -> None:
    driver.rows("INSERT INTO example VALUES (1)", ())


def _count(database: Database) -> int:
    with database.read() as connection:
        [count] = connection.exec_driver_sql("SELECT count(*) FROM example").one()
    return int(count)


def test_the_next_write_takes_the_connection_of_the_last(database: Database) -> None:
    [kept] = database.kept
    write_idempotent(database, _insert)
    assert list(database.kept) == [kept]
    assert _count(database) == 1


def test_a_write_within_a_write_has_a_connection_of_its_own(database: Database) -> None:
    """As one of another thread has."""
    seen = write_idempotent(database, lambda _: len(database.kept))
    assert seen == 0


def test_what_failed_is_undone_and_its_connection_is_not_kept(database: Database) -> None:
    def fail(driver: Driver) -> None:
        _insert(driver)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_idempotent(database, fail)

    assert not database.kept
    assert _count(database) == 0
    write_idempotent(database, _insert)
    assert _count(database) == 1


def test_a_fork_leaves_its_parent_s_connections_alone(database: Database) -> None:
    [kept] = database.kept
    child = os.fork()
    if child == 0:
        write_idempotent(database, _insert)
        os._exit(0 if kept in database.kept and len(database.kept) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    write_idempotent(database, _insert)
    assert list(database.kept) == [kept]
    assert _count(database) == 2


def test_closing_lets_go_of_all(database: Database) -> None:
    database.close()
    assert not database.kept
