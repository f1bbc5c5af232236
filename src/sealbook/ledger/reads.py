"""What everybody may ask of the ledger. Reading never writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import Any, TypedDict, Unpack

import msgspec
from sqlalchemy import ColumnElement, Row, Select, func, select

from sealbook.errors import InvalidInput
from sealbook.ledger.engine import Database
from sealbook.ledger.tables import KEY, attempt, partition_state
from sealbook.model import Attempt, Check, Outcome, PartitionKey, PartitionState, RunId, Status

_PAGE = 2_000  # rows fetched at a time while streaming

_STATUS = {status.value: status for status in Status}

_CONDITIONS: dict[str, Callable[[Any], ColumnElement[bool]]] = {
    "source": partition_state.c.source.__eq__,
    "customer_id": partition_state.c.customer_id.__eq__,
    "query_name": partition_state.c.query_name.__eq__,
    "since": partition_state.c.logical_date.__ge__,
    "until": partition_state.c.logical_date.__le__,
    "status": partition_state.c.status.__eq__,
}


class StateFilters(TypedDict, total=False):
    """What states can be filtered by; None filters nothing, `since` and `until` are both included."""

    source: str | None
    customer_id: str | None
    query_name: str | None
    since: date | None
    until: date | None
    status: Status | str | None


class LedgerReads:
    """The port of readers: consumers, extractors, loaders, the status page."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def state(self, key: PartitionKey) -> PartitionState:
        """Return the state of a partition; pending where there is no row (R-STATE-1)."""
        query = select(partition_state).where(*at_key(partition_state, key))
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return PartitionState.pending(key) if row is None else state_from_row(row)

    def states(self, **filters: Unpack[StateFilters]) -> Iterator[PartitionState]:
        """Stream the states that match, in key order, as of one instant."""
        key_order = (partition_state.c[name] for name in KEY)
        return self._stream(select(partition_state).where(*_conditions(filters)).order_by(*key_order))

    def status_counts(self, **filters: Unpack[StateFilters]) -> dict[Status, int]:
        """Count the states that match, by status; every status is there, be it with 0."""
        status = partition_state.c.status
        query = select(status, func.count()).where(*_conditions(filters)).group_by(status)
        with self._database.read() as connection:
            found = {_STATUS[name]: count for name, count in connection.execute(query)}
        return {each: found.get(each, 0) for each in Status}

    def attempts(self, key: PartitionKey) -> list[Attempt]:
        """Return every judgement of a partition, oldest first, with its evidence."""
        query = select(attempt).where(*at_key(attempt, key)).order_by(attempt.c.attempt)
        with self._database.read() as connection:
            return [_attempt_from_row(key, row) for row in connection.execute(query)]

    def _stream(self, query: Select[Any]) -> Iterator[PartitionState]:
        if self._database.in_memory:
            # Its one connection must be free again before the caller goes on.
            with self._database.read() as connection:
                everything = connection.execute(query).all()
            yield from map(state_from_row, everything)
            return
        with self._database.read() as connection:
            rows = connection.execution_options(yield_per=_PAGE).execute(query)
            for page in rows.partitions():
                yield from map(state_from_row, page)


def at_key(table: Any, key: PartitionKey) -> list[ColumnElement[bool]]:
    """Return the conditions that pick one partition's rows of a table."""
    return [table.c[name] == getattr(key, name) for name in KEY]


def state_from_row(row: Sequence[Any]) -> PartitionState:
    """Build the state from a row of partition_state in the order of its columns."""
    (source, customer_id, query_name, logical_date, status, run_id, version, count, at, error, attempts) = row
    return PartitionState(
        source,
        customer_id,
        query_name,
        logical_date,
        _STATUS[status],
        None if run_id is None else RunId(run_id),
        version,
        count,
        at,
        error,
        attempts,
    )


def _attempt_from_row(key: PartitionKey, row: Row[Any]) -> Attempt:
    fields = {name: value for name, value in row._asdict().items() if name not in KEY}
    fields["run_id"] = RunId(fields["run_id"])
    fields["outcome"] = Outcome(fields["outcome"])
    fields["checks"] = msgspec.convert(fields["checks"], tuple[Check, ...])
    return Attempt(key=key, **fields)


def _conditions(filters: StateFilters) -> list[ColumnElement[bool]]:
    conditions = []
    for name, value in filters.items():
        if name not in _CONDITIONS:
            raise TypeError(f"states are not filtered by {name!r}, but by {', '.join(_CONDITIONS)}")
        if value is not None:
            _check_filter(name, value)
            conditions.append(_CONDITIONS[name](value))
    return conditions


def _check_filter(name: str, value: object) -> None:
    if name in ("since", "until"):
        if not isinstance(value, date) or isinstance(value, datetime):
            raise InvalidInput.of(name, value, "a datetime.date")
    elif not isinstance(value, str):
        raise InvalidInput.of(name, value, "text")
    elif name == "status" and value not in _STATUS:
        raise InvalidInput.of(name, value, f"one of {', '.join(_STATUS)}")
