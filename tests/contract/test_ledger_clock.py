"""R-STATE-11: times in the ledger come from one clock, whatever the machines of its writers think it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from sealbook.errors import InvalidInput
from sealbook.ledger.db import clock as ledger_clock
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database

LATER = timedelta(days=8)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    """An empty ledger's database."""
    with closing(Database(ledger_url)) as opened:
        yield opened


def test_a_machine_that_is_days_behind_has_no_say(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL the database's clock is the ledger's; a SQLite file has only its machine's."""
    behind = datetime.now(UTC) - LATER
    monkeypatch.setattr(ledger_clock, "utc_now", lambda: behind)
    with database.read() as connection:
        found = LedgerClock().now(connection)
    assert found.tzinfo is UTC
    assert (found == behind) is (database.dialect == "sqlite")
    assert (found > behind + LATER / 2) is (database.dialect == "postgresql")


def test_time_does_not_go_back(database: Database) -> None:
    """A clock that was set back goes on from the latest time that is known."""
    now = datetime(2026, 2, 1, tzinfo=UTC)
    clock = LedgerClock(lambda: now)
    with database.read() as connection:
        assert clock.now(connection) == now
        assert clock.now(connection, not_before=now + LATER) == now + LATER
        assert clock.now(connection, not_before=now - LATER) == now


def test_a_time_without_a_zone_is_refused(database: Database) -> None:
    with database.read() as connection, pytest.raises(InvalidInput, match="time"):
        LedgerClock(lambda: datetime(2026, 2, 1)).now(connection)  # noqa: DTZ001
