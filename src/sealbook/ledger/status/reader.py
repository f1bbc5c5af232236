"""What may be asked of the status of partitions: it is held against what is expected when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, replace
from datetime import date, datetime
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Executable, Row, and_, bindparam, func, select

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events import projections
from sealbook.ledger.events.feed import measure_backlog
from sealbook.ledger.events.lag import Lag
from sealbook.ledger.events.tables import projection
from sealbook.ledger.states.tables import validator
from sealbook.ledger.status.asking import Asked, SeriesIds, ask
from sealbook.ledger.status.counting import count
from sealbook.ledger.status.lines import known_lines, missing_lines, untouched_line
from sealbook.ledger.status.projection import projection_name
from sealbook.ledger.status.tables import (
    SERIES,
    day_number,
    day_of,
    partition_status,
    status_series,
    time_of,
)
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.scope import DEFAULT_SCOPE, Scope
from sealbook.model.selection import Selection
from sealbook.model.staleness import StaleReason
from sealbook.model.status_line import ALL, StatusCounts, StatusFilter, StatusLine
from sealbook.model.universe import AssetName

_EVERYTHING = Selection()
_MOST_CUSTOMERS = 256


class StatusReader:
    """The port of whoever asks how partitions stand. It reads what is projected; `lag` says how far that is.

    Partitions are chosen by keys, names and days; runs and statuses of a selection say nothing here.
    """

    def __init__(self, database: Database, clock: LedgerClock, scope: Scope = DEFAULT_SCOPE) -> None:
        self._database = database
        self._clock = clock
        self._name = projection_name(scope)

    def line(self, key: PartitionKey, expectations: Expectations) -> StatusLine:
        """Return the line of one partition, known or not."""
        found = self.lines(expectations, Selection(keys=[key]), limit=1)
        return found[0] if found else untouched_line(key, expectations)

    def reasons(self, key: PartitionKey, expectations: Expectations) -> list[StaleReason]:
        """Return every reason for which a partition is stale, the main one first, with what caused it."""
        with self._database.read() as connection:
            row = self._rows(connection, [key]).get(key)
            at = None if row is None else time_of(row.materialized_at)
            if row is None or at is None:
                return []
            above = self._rows(connection, expectations.universe.upstreams(key))

        def materialized(upstream: PartitionKey) -> datetime | None:
            found = above.get(upstream)
            return None if found is None else time_of(found.materialized_at)

        return expectations.reasons(key, at, row.contract_hash, materialized)

    def lines(
        self,
        expectations: Expectations,
        selection: Selection = _EVERYTHING,
        *,
        where: StatusFilter = ALL,
        after: PartitionKey | None = None,
        limit: int,
    ) -> list[StatusLine]:
        """Return the first lines in the order of keys, from behind `after` on; missing ones are there too."""
        with self._database.read() as connection:
            found = self._lines(connection, expectations, selection, where, after)
            return list(islice(found, limit))

    def counts(self, expectations: Expectations, selection: Selection = _EVERYTHING) -> StatusCounts:
        """Count the lines by display, by availability and by stale reason, and those due by query."""
        with self._database.read() as connection:
            return count(connection, self._ask(connection, expectations, selection))

    def first_known(self) -> dict[AssetName, date]:
        """Return the first day that is known of each query."""
        of = status_series.c
        first = (
            select(func.min(partition_status.c.day))
            .where(partition_status.c.series_id == of.id)
            .correlate(status_series)
            .scalar_subquery()
        )
        query = (
            select(of.source, of.query_name, func.min(first))
            .join(projection, projection.c.id == of.projection_id)
            .where(projection.c.name == self._name, projection.c.active)
            .group_by(of.source, of.query_name)
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return {AssetName(source, name): day_of(day) for source, name, day in rows if day is not None}

    def lag(self) -> Lag:
        """Return how far what is read is behind the log."""
        with self._database.read() as connection:
            state = projections.find(connection, self._name)
            now = self._clock.now(connection)
        return Lag.of(measure_backlog(self._database, 0 if state is None else state.position), now)

    def _lines(
        self,
        connection: Connection,
        expectations: Expectations,
        selection: Selection,
        where: StatusFilter,
        after: PartitionKey | None,
    ) -> Iterator[StatusLine]:
        """Stream lines: customer by customer, of whom ever more are looked at while little is found."""
        asked = self._ask(connection, expectations, selection)
        owners = sorted({each.name[:2] for each in asked.series})
        if after is not None:
            owners = [each for each in owners if each >= (after.source, after.customer_id)]
        start, size = 0, 1
        while start < len(owners):
            chosen = set(owners[start : start + size])
            part = replace(asked, series=[each for each in asked.series if each.name[:2] in chosen])
            found = list(known_lines(connection, part, where))
            if where.takes_missing:
                found += filter(where.takes, missing_lines(connection, part))
            found.sort(key=attrgetter("key"))
            yield from (line for line in found if after is None or line.key > after)
            start, size = start + size, min(2 * size, _MOST_CUSTOMERS)

    def _ask(self, connection: Connection, expectations: Expectations, selection: Selection) -> Asked:
        judges = select(validator.c.contract_hash, func.max(validator.c.id)).group_by(
            validator.c.contract_hash
        )
        validators: dict[str, int] = dict(connection.execute(judges).all())
        return ask(expectations, selection, self._ids(connection), validators)

    def _ids(self, connection: Connection) -> SeriesIds:
        of = status_series.c
        query = (
            select(of.id, *(of[name] for name in SERIES))
            .join(projection, projection.c.id == of.projection_id)
            .where(projection.c.name == self._name, projection.c.active)
        )
        rows = connection.execute(query)
        return {(source, customer, query_name): number for number, source, customer, query_name in rows}

    def _rows(self, connection: Connection, keys: Iterable[PartitionKey]) -> dict[PartitionKey, Row[Any]]:
        """Return when each of some partitions was materialized, and by which contract, as far as known."""
        asked = {(*astuple(key)[:3], day_number(key.logical_date)): key for key in keys}
        rows = encode_rows({**dict(zip(SERIES, names, strict=True)), "day": day} for *names, day in asked)
        found = connection.execute(_materialized(connection.dialect.name), rows | {"name": self._name})
        return {asked[tuple(row[:4])]: row for row in found}


@cache
def _materialized(dialect: str) -> Executable:
    given = given_rows(dialect, [*(status_series.c[name] for name in SERIES), partition_status.c.day])
    named = and_(*(status_series.c[name] == given.c[name] for name in SERIES))
    return (
        select(*given.c, partition_status.c.materialized_at, validator.c.contract_hash)
        .select_from(given)
        .join(projection, and_(projection.c.name == bindparam("name"), projection.c.active))
        .join(status_series, and_(status_series.c.projection_id == projection.c.id, named))
        .join(
            partition_status,
            and_(partition_status.c.series_id == status_series.c.id, partition_status.c.day == given.c.day),
        )
        .outerjoin(validator, validator.c.id == partition_status.c.validator_id)
    )
