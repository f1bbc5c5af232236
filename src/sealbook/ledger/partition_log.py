"""The log by partition: every fact about each, whichever runs they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Select, select

from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import stream
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events.facts import PartitionRun, told_sealed
from sealbook.ledger.events.rows import SELECT_EVENTS, event_from_row
from sealbook.ledger.events.tables import retired_run, run_event
from sealbook.ledger.states.tables import attempt
from sealbook.model import PartitionKey, RunEvent
from sealbook.model.partition_events import FACT_TYPES

_IN_ORDER: Select[Any] = SELECT_EVENTS.where(
    run_event.c.partition.is_not(None), run_event.c.event_type.in_(FACT_TYPES)
).order_by(run_event.c.partition, run_event.c.position)


class PartitionLog:
    """The port of whoever builds something of each partition's facts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all_events(self) -> Iterator[RunEvent]:
        """Stream the events of every partition, partition by partition, each in the order of commits."""
        return stream(self._database, _IN_ORDER, _event)

    def events(self, key: PartitionKey) -> list[RunEvent]:
        """Return the events of one partition, in the order of commits."""
        query = _IN_ORDER.where(run_event.c.partition == str(key))
        with self._database.read() as connection:
            return [event_from_row(row) for row in connection.execute(query)]

    def untold_seals(self, runs: Iterable[PartitionRun]) -> list[PartitionRun]:
        """Return those of some sealed runs of partitions that no PartitionSealed tells of, in their order."""
        found = list(runs)
        with self._database.read() as connection:
            told = told_sealed(connection, found)
        return [each for each in found if each not in told]

    def retired(self) -> set[PartitionKey]:
        """Return the partitions of which a run was retired: the log does not say all of them any more."""
        query = select(*(attempt.c[name] for name in KEY)).join(
            retired_run, retired_run.c.run_id == attempt.c.run_id
        )
        with self._database.read() as connection:
            return {PartitionKey(*row) for row in connection.execute(query.distinct())}


def _event(*row: Any) -> RunEvent:
    return event_from_row(row)
