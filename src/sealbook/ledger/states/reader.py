"""What everybody may ask of the ledger. Reading never writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from operator import eq, ge, le
from typing import Any, TypedDict, Unpack

import msgspec
from sqlalchemy import ColumnElement, Row, Table, func, select

from sealbook.errors import InvalidInput
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import at_key, stream
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.states.tables import attempt, partition_state
from sealbook.model import Attempt, Check, Outcome, PartitionKey, PartitionState, RunId, Status
from sealbook.model.keys import check_customer_id, check_date, check_key, check_name

_CONDITIONS: dict[str, tuple[str, Callable[[Any, Any], ColumnElement[bool]]]] = {
    "source": ("source", eq),
    "customer_id": ("customer_id", eq),
    "query_name": ("query_name", eq),
    "since": ("logical_date", ge),
    "until": ("logical_date", le),
    "status": ("status", eq),
}


class KeyFilters(TypedDict, total=False):
    """What partitions can be filtered by; None filters nothing, `since` and `until` are both included."""

    source: str | None
    customer_id: str | None
    query_name: str | None
    since: date | None
    until: date | None


class StateFilters(KeyFilters, total=False):
    """What states can be filtered by."""

    status: Status | str | None


class LedgerReads:
    """The port of readers: consumers, extractors, loaders, the status page."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def state(self, key: PartitionKey) -> PartitionState:
        """Return the state of a partition; pending where there is no row (R-STATE-1)."""
        check_key(key)
        query = select(partition_state).where(*at_key(partition_state, key))
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return PartitionState.pending(key) if row is None else PartitionState(*row)

    def states(self, **filters: Unpack[StateFilters]) -> Iterator[PartitionState]:
        """Stream the states that match, in key order, as of one instant."""
        key_order = (partition_state.c[name] for name in KEY)
        query = select(partition_state).where(*matching(filters)).order_by(*key_order)
        return stream(self._database, query, PartitionState)

    def status_counts(self, **filters: Unpack[StateFilters]) -> dict[Status, int]:
        """Count the states that match, by status; every status is there, be it with 0."""
        status = partition_state.c.status
        query = select(status, func.count()).where(*matching(filters)).group_by(status)
        with self._database.read() as connection:
            found: dict[Status, int] = dict(connection.execute(query).all())
        return {each: found.get(each, 0) for each in Status}

    def attempts(self, key: PartitionKey) -> list[Attempt]:
        """Return every judgement of a partition, oldest first, with its evidence."""
        check_key(key)
        query = select(attempt).where(*at_key(attempt, key)).order_by(attempt.c.attempt)
        with self._database.read() as connection:
            return [_attempt_from_row(key, row) for row in connection.execute(query)]

    def latest_judged(
        self, run_id: RunId | None = None, **filters: Unpack[KeyFilters]
    ) -> Iterator[tuple[PartitionKey, RunId]]:
        """Stream the newest judged run of each partition, in key order; or of those that judged `run_id`."""
        key = [attempt.c[name] for name in KEY]
        query = select(*key, func.max(attempt.c.run_id)).where(*matching(filters, attempt))
        if run_id is not None:
            query = query.where(attempt.c.run_id == run_id)
        query = query.group_by(*key).order_by(*key)
        return stream(self._database, query, lambda *row: (PartitionKey(*row[:4]), RunId(row[4])))

    def accepted_counts(self, **filters: Unpack[KeyFilters]) -> Iterator[tuple[PartitionKey, RunId, int]]:
        """Stream the runs whose last judgement is an acceptance, with their record counts, by key and run."""
        run = [attempt.c[name] for name in (*KEY, "run_id")]
        recency = func.row_number().over(partition_by=run, order_by=attempt.c.attempt.desc()).label("recency")
        judged = (
            select(*run, attempt.c.record_count, attempt.c.outcome, recency)
            .where(*matching(filters, attempt))
            .subquery()
        )
        query = (
            select(*judged.c[*KEY, "run_id", "record_count"])
            .where(judged.c.recency == 1, judged.c.outcome == Outcome.ACCEPTED)
            .order_by(*judged.c[*KEY, "run_id"])
        )
        return stream(self._database, query, lambda *row: (PartitionKey(*row[:4]), RunId(row[4]), row[5]))


def _attempt_from_row(key: PartitionKey, row: Row[Any]) -> Attempt:
    fields = {name: value for name, value in row._asdict().items() if name not in KEY}
    fields["outcome"] = Outcome(fields["outcome"])
    fields["checks"] = msgspec.convert(fields["checks"], tuple[Check, ...])
    return Attempt(key=key, **fields)


def matching(filters: StateFilters | KeyFilters, table: Table = partition_state) -> list[ColumnElement[bool]]:
    """Check filters, and return them as conditions on a table that has the columns of a key."""
    conditions = []
    known = {name: condition for name, condition in _CONDITIONS.items() if condition[0] in table.c}
    for name, value in filters.items():
        if name not in known:
            raise TypeError(f"{table.name} is not filtered by {name!r}, but by {', '.join(known)}")
        if value is not None:
            _check_filter(name, value)
            column, compare = known[name]
            conditions.append(compare(table.c[column], value))
    return conditions


def _check_filter(name: str, value: object) -> None:
    """Refuse what no key and no status can be: it would find nothing, and nobody would know why."""
    match name:
        case "since" | "until":
            check_date(name, value)
        case "customer_id":
            check_customer_id("any", value)
        case "status":
            if value not in list(Status):
                raise InvalidInput.of(name, value, f"one of {', '.join(Status)}")
        case _:
            check_name(name, value)
