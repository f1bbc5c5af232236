"""The side of the ledger that cannot write: it creates nothing, migrates nothing, and the database agrees."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import delete

from sealbook.errors import ConfigError, NotMigrated, SealbookError
from sealbook.ledger import open_ledger
from sealbook.ledger.reader import open_ledger_reader
from sealbook.ledger.states.tables import partition_state
from tests.support.ledger import KEY, PostgresqlServer, accept


def test_it_reads_what_is_there_and_the_database_refuses_its_writes(ledger_url: str) -> None:
    with open_ledger(ledger_url) as ledger:
        ledger.judge([accept(KEY)])
    with open_ledger_reader(ledger_url) as reader:
        assert [state.key for state in reader.states()] == [KEY]
        assert reader.knows(source=KEY.source)
        assert not reader.knows(customer="9999999999")
        with pytest.raises(SealbookError, match=r"read-?only"):
            reader._database.write(lambda connection: connection.execute(delete(partition_state)))
        assert reader.state(KEY).attempt_count == 1


def test_it_sees_what_others_write_meanwhile(ledger_url: str) -> None:
    with open_ledger_reader(ledger_url) as reader, open_ledger(ledger_url) as ledger:
        assert list(reader.states()) == []
        ledger.judge([accept(KEY)])
        assert len(list(reader.states())) == 1


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"book\.db"):
        open_ledger_reader(f"sqlite:///{tmp_path}/book.db")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_migrated(tmp_path: Path, postgresql: PostgresqlServer) -> None:
    (tmp_path / "book.db").touch()
    for url in (f"sqlite:///{tmp_path}/book.db", postgresql.create_database()):
        with pytest.raises(NotMigrated, match="no ledger yet"):
            open_ledger_reader(url)
