"""What may be asked of the status of partitions: it is held against what is expected when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date, datetime
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, Row, and_, bindparam, func, select

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.events import projections
from sealbook.ledger.events.lag import Lag
from sealbook.ledger.events.tables import projection
from sealbook.ledger.states.tables import validator
from sealbook.ledger.status.asking import Asked, ask
from sealbook.ledger.status.cells import CODES, LETTERS, cells_of
from sealbook.ledger.status.counting import count
from sealbook.ledger.status.lines import known_lines, missing_lines, untouched_line
from sealbook.ledger.status.projection import projection_name
from sealbook.ledger.status.ranking import Ranked, rank
from sealbook.ledger.status.scopes import own_backlog, runs_of
from sealbook.ledger.status.tables import (
    SERIES,
    day_number,
    day_of,
    partition_status,
    status_series,
    time_of,
)
from sealbook.ledger.status.wanting import Wanting, at_due_points, find_wanting
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.scope import DEFAULT_SCOPE, Scope
from sealbook.model.selection import Selection, key_of
from sealbook.model.staleness import StaleReason
from sealbook.model.status_line import ALL, DayCells, StatusCounts, StatusFilter, StatusLine
from sealbook.model.universe import AssetName

_EVERYTHING = Selection()


class StatusReader:
    """The port of whoever asks how partitions stand. It reads what is projected; `lag` says how far that is.

    Partitions are chosen by keys, names and days; runs and statuses of a selection say nothing here.
    """

    def __init__(self, database: Database, clock: LedgerClock, scope: Scope = DEFAULT_SCOPE) -> None:
        self._database = database
        self._clock = clock
        self._scope = scope
        self._name = projection_name(scope)

    @property
    def name(self) -> str:
        """The name of the projection that is read."""
        return self._name

    def line(self, key: PartitionKey, expectations: Expectations) -> StatusLine:
        """Return the line of one partition, known or not."""
        with self._database.read() as connection:
            asked = ask_for(connection, self._name, expectations, Selection(keys=[key]))
            return next(known_lines(connection, asked, ALL), None) or untouched_line(key, expectations)

    def reasons(self, key: PartitionKey, expectations: Expectations) -> list[StaleReason]:
        """Return every reason for which a partition is stale, the main one first, with what caused it."""
        with self._database.read() as connection:
            row = self._rows(connection, [key])[key]
            at = time_of(row.materialized_at)
            if at is None:
                return []
            above = self._rows(connection, expectations.universe.upstreams(key))

        def materialized(upstream: PartitionKey) -> datetime | None:
            return time_of(above[upstream].materialized_at)

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
            return count(connection, ask_for(connection, self._name, expectations, selection))

    def cells(
        self,
        expectations: Expectations,
        selection: Selection,
        first: date,
        last: date,
        *,
        running: Collection[PartitionKey] = (),
        as_codes: bool = False,
    ) -> list[DayCells]:
        """Return the letter of a cell for each day of a span, for each series that is chosen.

        They are in the order of keys. `running` are partitions that a run is at work on just now. Codes of
        standings say more than the letters of cells.
        """
        with self._database.read() as connection:
            asked = ask_for(connection, self._name, expectations, selection)
            return cells_of(connection, asked, first, last, running, CODES if as_codes else LETTERS)

    def worst(self, expectations: Expectations, selection: Selection, rows: int) -> Ranked | None:
        """Return the customers of each query that have most of the worst cells; None if none is expected."""
        with self._database.read() as connection:
            return rank(connection, ask_for(connection, self._name, expectations, selection), rows)

    def own_runs(self, run_ids: Iterable[str]) -> set[str]:
        """Return those of some runs that are of the scope."""
        with self._database.read() as connection:
            return set(runs_of(connection, run_ids, self._scope))

    def wanting(self, expectations: Expectations, selection: Selection = _EVERYTHING) -> list[Wanting]:
        """Return which days want work: due and not there, or due once more."""
        with self._database.read() as connection:
            asked = ask_for(connection, self._name, at_due_points(expectations), selection)
            return list(find_wanting(connection, asked))

    def first_known(self) -> dict[AssetName, date]:
        """Return the first day that is known of each query."""
        return self._known(func.min)

    def last_known(self) -> dict[AssetName, date]:
        """Return the last day that is known of each query."""
        return self._known(func.max)

    def lag(self) -> Lag:
        """Return how far what is read is behind the log."""
        with self._database.read() as connection:
            state = projections.find(connection, self._name)
            backlog = own_backlog(connection, 0 if state is None else state.position, self._scope)
            return Lag.of(backlog, self._clock.now(connection))

    def _known(self, edge: Callable[[ColumnElement[int]], ColumnElement[int]]) -> dict[AssetName, date]:
        """Return the day at one edge of each query: of a series it is found by its key."""
        of = status_series.c
        day = (
            select(edge(partition_status.c.day))
            .where(partition_status.c.series_id == of.id)
            .correlate(status_series)
            .scalar_subquery()
        )
        query = (
            select(of.source, of.query_name, edge(day))
            .join(projection, projection.c.id == of.projection_id)
            .where(projection.c.name == self._name, projection.c.active)
            .group_by(of.source, of.query_name)
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return {AssetName(source, name): day_of(day) for source, name, day in rows if day is not None}

    def _lines(
        self,
        connection: Connection,
        expectations: Expectations,
        selection: Selection,
        where: StatusFilter,
        after: PartitionKey | None,
    ) -> Iterator[StatusLine]:
        """Stream lines: customer by customer, of whom ever more are looked at while little is found."""
        asked = ask_for(connection, self._name, expectations, selection)
        for part in (asked if after is None else asked.after(after)).parts():
            found = list(known_lines(connection, part, where))
            if where.takes_missing:
                found += filter(where.takes, missing_lines(connection, part))
            found.sort(key=attrgetter("key"))
            yield from (line for line in found if after is None or line.key > after)

    def _rows(self, connection: Connection, keys: Iterable[PartitionKey]) -> dict[PartitionKey, Row[Any]]:
        """Return of each of some partitions when it was materialized, and by which contract, if it was."""
        asked = {(*key_of(key)[:3], day_number(key.logical_date)): key for key in keys}
        rows = encode_rows({**dict(zip(SERIES, names, strict=True)), "day": day} for *names, day in asked)
        found = connection.execute(_materialized(connection.dialect.name), rows | {"name": self._name})
        return {asked[tuple(row[:4])]: row for row in found}


def ask_for(connection: Connection, name: str, expectations: Expectations, selection: Selection) -> Asked:
    """Say which series are chosen of the projection of a name, and what is expected of them."""
    judges = select(validator.c.id, validator.c.contract_hash)
    validators: dict[int, str | None] = dict(connection.execute(judges).all())
    of = status_series.c
    query = (
        select(of.id, *(of[each] for each in SERIES))
        .join(projection, projection.c.id == of.projection_id)
        .where(projection.c.name == name, projection.c.active)
    )
    customers = _customers(expectations, selection)
    if customers is not None:
        query = query.where(of.customer_id.in_(customers))
    rows = connection.execute(query).all()
    ids = {(source, customer, query_name): number for number, source, customer, query_name in rows}
    return ask(expectations, selection, ids, validators)


def _customers(expectations: Expectations, selection: Selection) -> list[str] | None:
    """Return the customers that are chosen; None for all, as also where something is made of all."""
    chosen = [key.customer_id for key in selection.keys] if selection.keys else selection.customers
    made_of_all = any(
        upstream.all_customers
        for asset in expectations.universe.assets.values()
        if selection.has_query(*asset.name)
        for upstream in asset.upstreams
    )
    return None if chosen is None or made_of_all else sorted({*chosen})


@cache
def _materialized(dialect: str) -> Executable:
    given = given_rows(dialect, [*(status_series.c[name] for name in SERIES), partition_status.c.day])
    named = and_(*(status_series.c[name] == given.c[name] for name in SERIES))
    same = and_(partition_status.c.series_id == status_series.c.id, partition_status.c.day == given.c.day)
    # Outer joins, as SQLite would otherwise read all partitions, and look for each among the keys.
    return (
        select(*given.c, partition_status.c.materialized_at, validator.c.contract_hash)
        .select_from(given)
        .outerjoin(projection, and_(projection.c.name == bindparam("name"), projection.c.active))
        .outerjoin(status_series, and_(status_series.c.projection_id == projection.c.id, named))
        .outerjoin(partition_status, same)
        .outerjoin(validator, validator.c.id == partition_status.c.validator_id)
    )
