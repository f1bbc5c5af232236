"""Open work to claim, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from sqlalchemy import select

from sealbook.ledger import Ledger
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.rows import OpenWork
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey, RunId
from sealbook.model.work import Lane, Work, WorkKind

NOW = datetime(2026, 3, 1, 6, tzinfo=UTC)
DAY = date(2026, 2, 1)


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def move(self, **span: float) -> datetime:
        self.now += timedelta(**span)
        return self.now


def key_of(customer: str, day: int = 0, query: str = "clicks", source: str = "demo") -> PartitionKey:
    """Return a partition by its customer, and the number of its day."""
    return PartitionKey(source, customer, query, DAY + timedelta(days=day))


def work_of(
    key: PartitionKey,
    lane: Lane = Lane.FRESH,
    *,
    kind: WorkKind = WorkKind.FETCH,
    ready_at: datetime = NOW,
    cost: int = 1,
    run_id: RunId | None = None,
) -> OpenWork:
    """Return something to be done about a partition."""
    return OpenWork(Work(key, lane, kind, ready_at, run_id=run_id), cost=cost)


def open_work(ledger: Ledger, rows: Iterable[OpenWork]) -> None:
    """Have something to be done."""
    added = list(rows)
    ledger._database.write(lambda connection: work_rows.write(connection, added))


def work_in(ledger: Ledger) -> dict[PartitionKey, OpenWork]:
    """Return all that is open."""
    with ledger._database.read() as connection:
        rows = connection.execute(select(work)).all()
    return {each.key: each for each in map(work_rows.read_row, rows)}
