"""The projection of partition status: each batch of events is folded in bulk (R-PST-2, R-PST-9).

How attempts went and what was published when, events say; the higher position in the feed wins. What
consumers get now, and by which contract it was accepted, the tables say: each change of them commits with an
event of the partition, which brings its row up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from sqlalchemy import Connection, Executable, bindparam, delete, insert, select

from sealbook.errors import InvalidInput
from sealbook.ledger.db.bulk import encode_rows, given_rows, insert_rows, update_rows
from sealbook.ledger.events.port import Backlog, FeedEvent
from sealbook.ledger.events.tables import projection
from sealbook.ledger.status.facts import Facts, read_facts
from sealbook.ledger.status.inheriting import inherit
from sealbook.ledger.status.rows import CHANGING, StatusRow, Told
from sealbook.ledger.status.scopes import own_backlog, runs_of
from sealbook.ledger.status.tables import SERIES, day_number, partition_status, status_series
from sealbook.model import PartitionKey
from sealbook.model.partition_events import FACT_TYPES
from sealbook.model.scope import DEFAULT_SCOPE, Scope

_FACTS = frozenset(FACT_TYPES)


class PartitionStatuses:
    """The status of every partition that the runs of a scope are about."""

    def __init__(self, scope: Scope = DEFAULT_SCOPE) -> None:
        self._scope = scope
        self.name = projection_name(scope)

    def apply(self, connection: Connection, projection_id: int, events: Sequence[FeedEvent]) -> None:
        """Fold the facts among events into the rows of their partitions."""
        told = self._told(connection, [each for each in events if each.event.event_type in _FACTS])
        if not told:
            return
        series = _series(connection, projection_id, {_names(key) for key in told})
        places = {key: (series[_names(key)], day_number(key.logical_date)) for key in told}
        before = _load(connection, places.values())
        after: dict[PartitionKey, StatusRow] = {}
        for key, facts in told.items():
            row = before.get(places[key]) or StatusRow(*places[key])
            for fact in facts:
                row = row.after(fact)
            after[key] = row
        rows = {key: row.materialized_run for key, row in after.items()}
        current = read_facts(connection, rows)
        _write(connection, before, (_with(row, current[key]) for key, row in after.items()))

    def backlog(self, connection: Connection, after: int) -> Backlog:
        """Measure what the runs of the scope have said after a position."""
        return own_backlog(connection, after, self._scope)

    def inherit(self, connection: Connection, before: int, after: int) -> None:
        """Take over what only rows that were read so far know: facts of runs that were retired."""
        inherit(connection, before, after)

    def discard(self, connection: Connection) -> None:
        """Remove the rows of projections that are no more."""
        kept = select(projection.c.id)
        connection.execute(delete(status_series).where(status_series.c.projection_id.not_in(kept)))
        known = select(status_series.c.id)
        connection.execute(delete(partition_status).where(partition_status.c.series_id.not_in(known)))

    def _told(self, connection: Connection, events: Sequence[FeedEvent]) -> dict[PartitionKey, list[Told]]:
        """Return what is said of each partition in runs of the scope."""
        if not events:
            return {}
        runs = runs_of(connection, {each.event.run_id for each in events}, self._scope)
        told: dict[str, list[Told]] = {}
        for each in events:
            run = runs.get(each.event.run_id)
            if run is not None and each.event.partition is not None:
                told.setdefault(each.event.partition, []).append(Told.of(each, run))
        return dict(_by_key(told))


def projection_name(scope: Scope) -> str:
    """Return the name of a scope's projection."""
    return "partition_status" if scope.is_default else f"partition_status/{'/'.join(scope)}"


def _by_key(told: dict[str, list[Told]]) -> Iterator[tuple[PartitionKey, list[Told]]]:
    for partition, facts in told.items():
        try:
            yield PartitionKey.parse(partition), facts
        except InvalidInput:
            continue  # another engine calls something else a partition


def _names(key: PartitionKey) -> tuple[str, str, str]:
    return key.source, key.customer_id, key.query_name


def _with(row: StatusRow, facts: Facts) -> StatusRow:
    if (row.availability, row.validator_id) == facts:
        return row
    return row._replace(availability=facts.availability, validator_id=facts.validator_id)


def _series(
    connection: Connection, projection_id: int, names: set[tuple[str, str, str]]
) -> dict[tuple[str, str, str], int]:
    """Return the numbers of series; those that are new are written."""
    asked = encode_rows(dict(zip(SERIES, each, strict=True)) for each in names)
    query = _find_series(connection.dialect.name)

    def find() -> dict[tuple[str, str, str], int]:
        rows = connection.execute(query, {**asked, "projection": projection_id})
        return {(source, customer, query_name): number for number, source, customer, query_name in rows}

    found = find()
    new = sorted(names - found.keys())
    if new:
        rows = [dict(zip(SERIES, each, strict=True)) | {"projection_id": projection_id} for each in new]
        connection.execute(insert(status_series), rows)
        found = find()
    return found


def _load(connection: Connection, places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], StatusRow]:
    asked = encode_rows({"series_id": series, "day": day} for series, day in places)
    rows = connection.execute(_find_rows(connection.dialect.name), asked)
    return {(row.series_id, row.day): StatusRow(*row) for row in rows}


def _write(
    connection: Connection, before: dict[tuple[int, int], StatusRow], after: Iterable[StatusRow]
) -> None:
    new, changed = [], []
    for row in after:
        known = before.get((row.series_id, row.day))
        if known is None:
            new.append(row)
        elif row != known:
            changed.append(row)
    if new:
        insert_rows(connection, partition_status, new)
    if changed:
        update_rows(connection, partition_status, changed, CHANGING)


@cache
def _find_series(dialect: str) -> Executable:
    asked = given_rows(dialect, [status_series.c[name] for name in SERIES])
    named = [status_series.c[name] == asked.c[name] for name in SERIES]
    names = (status_series.c[name] for name in SERIES)
    return (
        select(status_series.c.id, *names)
        .select_from(asked)
        .join(
            status_series,
            (status_series.c.projection_id == bindparam("projection")) & named[0] & named[1] & named[2],
        )
    )


@cache
def _find_rows(dialect: str) -> Executable:
    asked = given_rows(dialect, [partition_status.c.series_id, partition_status.c.day])
    same = (partition_status.c.series_id == asked.c.series_id) & (partition_status.c.day == asked.c.day)
    return select(partition_status).select_from(asked).join(partition_status, same)
