"""The side of the ledger that cannot write: what consumers, pages and planners are handed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Self

from sealbook.errors import SealbookError
from sealbook.ledger.accounts import AccountReader
from sealbook.ledger.contracts import ContractReader
from sealbook.ledger.db import schema
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events.horizon import run_horizon
from sealbook.ledger.events.reader import RunStoreReader
from sealbook.ledger.followers import LINEAGE, LogFollowerReader
from sealbook.ledger.partition_log import PartitionLog
from sealbook.ledger.pointers import PointerReader
from sealbook.ledger.position import Position, read_position
from sealbook.ledger.run_partitions import run_partitions
from sealbook.ledger.schedule.reader import ScheduleReader
from sealbook.ledger.states.audit import OverrideLog
from sealbook.ledger.states.reader import StateReader
from sealbook.ledger.status import StatusReader
from sealbook.model import PartitionKey
from sealbook.model.scope import DEFAULT_SCOPE, Scope


class LedgerReader(StateReader):
    """What may be asked of the ledger, and no way to change it: hand this to whoever only reads.

    States and attempts are asked for here, the rest of `statuses`, `schedule`, `pointers`, `run_store`,
    `contracts`, `partition_log`, `override_log` and `accounts`. The scope is whose partitions `statuses`
    tells of, and whose `accounts`.
    """

    def __init__(
        self, database: Database, clock: LedgerClock | None = None, scope: Scope = DEFAULT_SCOPE
    ) -> None:
        super().__init__(database)
        self._clock = clock or LedgerClock()
        self._scope = scope
        self.statuses = StatusReader(database, self._clock, scope)
        self.schedule = ScheduleReader(database, self._clock)
        self.pointers = PointerReader(database)
        self.run_store = RunStoreReader(database)
        self.contracts = ContractReader(database)
        self.partition_log = PartitionLog(database)
        self.override_log = OverrideLog(database)
        self.accounts = AccountReader(database, scope)
        self.lineage = LogFollowerReader(database, self._clock, LINEAGE, scope)

    @contextmanager
    def snapshot(self) -> Iterator[LedgerReader]:
        """Yield a reader all of whose answers are of one instant, for any number of them, by any thread.

        That instant is the first question. It is closed with the block, and must not be closed by itself.
        """
        with self._database.snapshot() as at_one_instant:
            yield LedgerReader(at_one_instant, self._clock, self._scope)

    def left_of(self, run_id: str) -> list[PartitionKey]:
        """Return the partitions that a run set out to do and that have not ended in it."""
        with self._database.read() as connection:
            found = run_partitions(connection, run_id)
        return [key for key, each in found.items() if not each.progress.ended]

    def now(self) -> datetime:
        """Return the time by the ledger's clock."""
        with self._database.read() as connection:
            return self._clock.now(connection)

    def position(self) -> Position:
        """Return how far the ledger is: who asks again and gets the same has missed nothing."""
        with self._database.read() as connection:
            return read_position(connection)

    def run_horizon(self) -> datetime:
        """Return the time up to which runs are not from the future (R-RUN-2)."""
        with self._database.read() as connection:
            return run_horizon(connection, self._clock.now(connection))

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_ledger_reader(url: str, *, scope: Scope = DEFAULT_SCOPE) -> LedgerReader:
    """Open a ledger to read alone: nothing is created or migrated, and the database refuses any write."""
    database = Database(url, read_only=True)
    try:
        schema.check_version(database)
    except SealbookError:
        database.close()
        raise
    return LedgerReader(database, scope=scope)
