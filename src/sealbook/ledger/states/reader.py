"""What everybody may ask of states and attempts. Reading never writes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Row, func, select

from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import at_key, stream
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.states.evidence import checks_of
from sealbook.ledger.states.holds import HOLDS
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import attempt, partition_state, rollback, validator
from sealbook.model import Attempt, Outcome, PartitionKey, PartitionState, RunId, Status
from sealbook.model.keys import check_key
from sealbook.model.selection import Extent, Selection

EVERYTHING = Selection()


class StateReader:
    """The port of whoever asks: consumers, extractors, loaders, the status page."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def state(self, key: PartitionKey) -> PartitionState:
        """Return the state of a partition; pending where there is no row (R-STATE-1)."""
        check_key(key)
        query = select(partition_state).where(*at_key(partition_state, key))
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return PartitionState.pending(key) if row is None else PartitionState(*row)

    def states(
        self,
        selection: Selection | None = None,
        *,
        source: str | None = None,
        customer_id: str | None = None,
        query_name: str | None = None,
        since: date | None = None,
        until: date | None = None,
        status: Status | str | None = None,
    ) -> Iterator[PartitionState]:
        """Stream the states that are chosen, in key order, as of one instant."""
        chosen = selection or Selection(
            source=source,
            customers=customer_id,
            queries=query_name,
            since=since,
            until=until,
            statuses=status,
        )
        key_order = (partition_state.c[name] for name in KEY)
        query = select(partition_state).where(*self._chosen(chosen)).order_by(*key_order)
        return stream(self._database, query, PartitionState)

    def status_counts(self, selection: Selection = EVERYTHING) -> dict[Status, int]:
        """Count the states that are chosen, by status; every status is there, be it with 0."""
        status = partition_state.c.status
        query = select(status, func.count()).where(*self._chosen(selection)).group_by(status)
        with self._database.read() as connection:
            found: dict[Status, int] = dict(connection.execute(query).all())
        return {each: found.get(each, 0) for each in Status}

    def extent(self, selection: Selection = EVERYTHING) -> Extent:
        """Return which customers, and which span of days, have states among those that are chosen."""
        of = partition_state.c
        query = select(of.customer_id, func.min(of.logical_date), func.max(of.logical_date))
        with self._database.read() as connection:
            spans = connection.execute(query.where(*self._chosen(selection)).group_by(of.customer_id))
            return Extent.of((customer_id, first, last) for customer_id, first, last in spans)

    def attempts(self, key: PartitionKey) -> list[Attempt]:
        """Return every judgement of a partition, oldest first, with its evidence."""
        check_key(key)
        query = _ATTEMPTS.where(*at_key(attempt, key)).order_by(attempt.c.attempt)
        with self._database.read() as connection:
            return [_attempt_from_row(key, row) for row in connection.execute(query)]

    def judgements(self, keys: Collection[PartitionKey]) -> list[Attempt]:
        """Return every judgement of some partitions, in the order of keys, with its evidence."""
        if not keys:
            return []
        chosen = conditions(self._database.dialect, attempt, Selection(keys=keys))
        query = _ATTEMPTS.where(*chosen).order_by(*(attempt.c[name] for name in (*KEY, "attempt")))
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [_attempt_from_row(PartitionKey(*(getattr(row, name) for name in KEY)), row) for row in rows]

    def judged_runs(self, selection: Selection) -> Iterator[tuple[PartitionKey, RunId]]:
        """Stream every run that has been judged of the partitions that are chosen, in the order of keys."""
        run = [attempt.c[name] for name in (*KEY, "run_id")]
        chosen = conditions(self._database.dialect, attempt, selection)
        query = select(*run).where(*chosen).distinct().order_by(*run)
        return stream(self._database, query, lambda *row: (PartitionKey(*row[:4]), RunId(row[4])))

    def judged_run_names(self, selection: Selection) -> Iterator[tuple[str, str, str, date, str]]:
        """Stream the same as plain values, with each run once, in the order of keys and then of runs."""
        names = (attempt.c[name] for name in (*KEY, "run_id"))
        chosen = conditions(self._database.dialect, attempt, selection)
        # In the order of an index: with a run's place in it the database would sort the whole table.
        query = select(*names).where(*chosen).order_by(*(attempt.c[name] for name in KEY))
        for key, rows in groupby(stream(self._database, query, lambda *row: row), itemgetter(0, 1, 2, 3)):
            for run_id in sorted({row[4] for row in rows}):
                yield (*key, run_id)

    def accepted_counts(self, selection: Selection) -> Iterator[tuple[PartitionKey, RunId, int]]:
        """Stream the runs whose last judgement is an acceptance, with their record counts, by key and run."""
        run = [attempt.c[name] for name in (*KEY, "run_id")]
        recency = func.row_number().over(partition_by=run, order_by=attempt.c.attempt.desc()).label("recency")
        judged = (
            select(*run, attempt.c.record_count, attempt.c.outcome, recency)
            .where(*conditions(self._database.dialect, attempt, selection))
            .subquery()
        )
        query = (
            select(*judged.c[*KEY, "run_id", "record_count"])
            .where(judged.c.recency == 1, judged.c.outcome == Outcome.ACCEPTED)
            .order_by(*judged.c[*KEY, "run_id"])
        )
        return stream(self._database, query, lambda *row: (PartitionKey(*row[:4]), RunId(row[4]), row[5]))

    def holds(self, selection: Selection = EVERYTHING) -> Iterator[tuple[PartitionKey, RunId]]:
        """Stream what rollbacks hold authority against, of each partition that has been rolled back.

        Up to that run, none takes authority by itself any more (R-STATE-9).
        """
        query = HOLDS.where(*conditions(self._database.dialect, rollback, selection))
        in_order = query.order_by(*(rollback.c[name] for name in KEY))
        return stream(self._database, in_order, lambda *row: (PartitionKey(*row[:4]), RunId(row[4])))

    def knows(
        self, *, source: str | None = None, customer: str | None = None, query: str | None = None
    ) -> bool:
        """Say whether any partition that was judged has these names."""
        named = Selection(source=source, customers=customer, queries=query)
        with self._database.read() as connection:
            found = connection.execute(select(partition_state.c.status).where(*self._chosen(named)).limit(1))
            return found.one_or_none() is not None

    def _chosen(self, selection: Selection) -> list[Any]:
        return conditions(self._database.dialect, partition_state, selection)


_ATTEMPTS = select(attempt, validator.c.version, validator.c.checks).join(
    validator, validator.c.id == attempt.c.validator_id
)


def _attempt_from_row(key: PartitionKey, row: Row[Any]) -> Attempt:
    return Attempt(
        key=key,
        attempt=row.attempt,
        run_id=row.run_id,
        outcome=Outcome(row.outcome),
        schema_version=row.schema_version,
        record_count=row.record_count,
        error_message=row.error_message,
        validator_version=row.version,
        checks=checks_of(row.checks, row.findings),
        revalidation_id=row.revalidation_id,
        judged_at=row.judged_at,
    )
