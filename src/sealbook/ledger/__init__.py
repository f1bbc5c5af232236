"""The durable book: which partition is safe to consume, and how it came to be so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from types import TracebackType
from typing import Self

from sealbook.clock import Clock
from sealbook.errors import SealbookError
from sealbook.ledger import roles
from sealbook.ledger.accounts import AccountWriter
from sealbook.ledger.alerts import AlertWriter
from sealbook.ledger.contracts import ContractWriter
from sealbook.ledger.db import schema
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.connecting import ledger_exists
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events import Projector, Projectors, SqlRunStore
from sealbook.ledger.followers import LINEAGE, LogFollower
from sealbook.ledger.pointers import Pointers
from sealbook.ledger.reader import LedgerReader, open_ledger_reader
from sealbook.ledger.rollbacks import RollbackWriter
from sealbook.ledger.runs import RunWriter
from sealbook.ledger.schedule.following import WorkFollower
from sealbook.ledger.schedule.pauses import PauseWriter
from sealbook.ledger.schedule.plans import PlanWriter
from sealbook.ledger.schedule.rates import RateShares
from sealbook.ledger.schedule.revising import WorkReviser
from sealbook.ledger.schedule.rounds import RoundPlanner
from sealbook.ledger.schedule.scheduler import Scheduler
from sealbook.ledger.states.overrides import OverrideWriter, RequeueResult
from sealbook.ledger.states.verdicts import VerdictWriter
from sealbook.ledger.status import PartitionStatuses, StatusSweeper
from sealbook.model import PartitionKey, PartitionState, RunId, Verdict
from sealbook.model.retry import RetryPolicies
from sealbook.model.scope import DEFAULT_SCOPE, Scope

__all__ = [
    "Ledger",
    "LedgerReader",
    "grant_roles",
    "ledger_exists",
    "migrate",
    "open_ledger",
    "open_ledger_reader",
]


class Ledger:
    """All ports on one database; hand a worker only the port of its role."""

    def __init__(
        self,
        database: Database,
        given: Clock | None = None,
        scope: Scope = DEFAULT_SCOPE,
        retries: RetryPolicies | None = None,
    ) -> None:
        clock = LedgerClock(given)
        follower = WorkFollower(retries)
        self._database = database
        self._clock = clock
        self._scope = scope
        self.reader = LedgerReader(database, clock, scope)
        self.verdicts = VerdictWriter(database, clock, follower)
        self.overrides = OverrideWriter(database, clock, follower)
        self.rollbacks = RollbackWriter(database, clock, follower)
        self.pointers = Pointers(database, clock, follower)
        self.run_store = SqlRunStore(database, clock)
        self.runs = RunWriter(database, clock, follower, scope)
        self.contracts = ContractWriter(database, clock)
        self.alerts = AlertWriter(database, clock, scope)
        self.accounts = AccountWriter(database, clock, scope)
        self.lineage = LogFollower(database, clock, LINEAGE, scope)
        self.sweeper = StatusSweeper(database, clock, scope)
        self.scheduler = Scheduler(database, clock, retries)
        self.reviser = WorkReviser(database, clock)
        self.rounds = RoundPlanner(database, clock, self.reader.statuses, self.reader.pointers)
        self.plans = PlanWriter(database, clock, self.overrides)
        self.pauses = PauseWriter(database, clock)
        self.rates = RateShares(database, clock)
        self.state = self.reader.state
        self.states = self.reader.states
        self.status_counts = self.reader.status_counts
        self.attempts = self.reader.attempts

    def projector(self) -> Projectors:
        """Return what takes the log into the snapshots of runs and the status of partitions."""
        status = PartitionStatuses(self._scope)
        return Projectors(
            self.run_store,
            [self.run_store.projector(), Projector(self._database, self.run_store, status, self._clock)],
        )

    def open_run(self) -> RunId:
        """Open a run and return its id, newer than every run that the ledger knows (R-RUN-2)."""
        return self.runs.open_run()

    def judge(self, verdicts: Iterable[Verdict]) -> list[PartitionState]:
        """Apply verdicts in one transaction, all or none, and return the states in the order given."""
        return self.verdicts.judge(verdicts)

    def requeue(
        self,
        keys: Iterable[PartitionKey],
        *,
        actor: str,
        reason: str,
        filter: Mapping[str, object] | None = None,  # noqa: A002 - the log's own word for it
    ) -> list[RequeueResult]:
        """Turn failed partitions to pending, and say of each whether that was done, in the order given."""
        return self.overrides.requeue(keys, actor=actor, reason=reason, filter=filter)

    def rollback(
        self,
        key: PartitionKey,
        run_id: str,
        *,
        actor: str,
        reason: str,
        sealed: Iterable[RunId] | None = None,
    ) -> PartitionState:
        """Give authority to another accepted run of the same schema_version, and hold it there (R-STATE-9).

        `sealed` are the partition's runs in raw storage, for who knows it: then the run must be among them.
        """
        return self.rollbacks.rollback(key, run_id, actor=actor, reason=reason, sealed=sealed).state

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_ledger(
    url: str,
    *,
    migrate: bool = False,
    clock: Clock | None = None,
    scope: Scope = DEFAULT_SCOPE,
    retries: RetryPolicies | None = None,
) -> Ledger:
    """Open `sqlite:///book.db` or `postgresql://…`.

    SQLite is migrated by itself. PostgreSQL is migrated when asked to be, and else refused if it is behind.
    `clock` takes the place of the ledger's own: the database's on PostgreSQL, this machine's on SQLite.
    Runs that are opened belong to the `scope`, and so does the status of partitions that is told. `retries`
    say when what fails is tried again.
    """
    database = Database(url)
    try:
        if migrate or database.dialect == "sqlite":
            schema.bring_to_head(database)
        else:
            schema.check_version(database)
    except SealbookError:
        database.close()
        raise
    return Ledger(database, clock, scope, retries)


def migrate(url: str) -> tuple[str | None, str]:
    """Bring a ledger's tables to the version this code needs; return the revision before and after."""
    with closing(Database(url)) as database:
        return schema.bring_to_head(database)


def grant_roles(url: str, prefix: str = "sealbook_") -> list[str]:
    """Create the group roles on PostgreSQL with the rights each needs, and return their names."""
    with closing(Database(url)) as database:
        return roles.grant_roles(database, prefix)
