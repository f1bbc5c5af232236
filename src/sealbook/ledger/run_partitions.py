"""What runs set out to do, and how far each is with it, as the log says."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Connection, Select, case, or_, select

from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events.packing import unpack
from sealbook.ledger.events.rows import of_run
from sealbook.ledger.events.tables import run_event
from sealbook.ledger.states.holds import HOLDS
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import partition_state
from sealbook.model import EventType, PartitionKey, Status
from sealbook.model.partition_events import FACT_TYPES, Stage
from sealbook.model.run_end import RunPartition
from sealbook.model.selection import Selection

PLANNED = "planned"
"""The member of an `extract` step's data that says what the step set out to do, as selections."""


def run_partitions(connection: Connection, run_id: str) -> dict[PartitionKey, RunPartition]:
    """Return what a run set out to do, and what the log says of each partition so far."""
    partitions = {key: RunPartition() for key in _planned(connection, run_id)}
    for text, event_type, data in connection.execute(_facts(run_id)):
        key = PartitionKey.parse(text)
        members = None if data is None else unpack(data, run_id, text)
        outcome = members.get("outcome") if isinstance(members, dict) else None
        partitions.setdefault(key, RunPartition()).take(event_type, outcome)
    waiting = [key for key, each in partitions.items() if not each.progress.ended]
    for key in _superseded(connection, run_id, waiting):
        partitions[key].supersede()
    return partitions


def _planned(connection: Connection, run_id: str) -> Iterator[PartitionKey]:
    query = select(run_event.c.event_data, run_event.c.partition).where(
        of_run(run_id),
        run_event.c.event_type == EventType.STEP_STARTED.value,
        run_event.c.step_id == Stage.EXTRACT.value,
    )
    for data, partition in connection.execute(query):
        members = unpack(data, run_id, partition)
        # Another engine may have a step of this name, and say of it whatever it likes.
        for planned in members.get(PLANNED, ()) if isinstance(members, dict) else ():
            yield from Selection.from_dict(planned).expand()


def _facts(run_id: str) -> Select[Any]:
    """Select what the end of a run depends on, and no more: a run may have hundreds of thousands of facts."""
    judged = run_event.c.event_type == EventType.PARTITION_JUDGED.value
    return (
        select(run_event.c.partition, run_event.c.event_type, case((judged, run_event.c.event_data)))
        .where(of_run(run_id), run_event.c.event_type.in_(FACT_TYPES))
        .where(run_event.c.partition.is_not(None))
        .order_by(run_event.c.run_seq)
    )


def _superseded(
    connection: Connection, run_id: str, waiting: Collection[PartitionKey]
) -> Iterator[PartitionKey]:
    """Return those of some partitions in which another run than this one has authority, and keeps it."""
    if not waiting:
        return
    holds = HOLDS.subquery("holds")
    query = (
        select(*(partition_state.c[name] for name in KEY))
        .outerjoin(holds, same(holds, partition_state))
        .where(
            *conditions(connection.dialect.name, partition_state, Selection(keys=waiting)),
            partition_state.c.status == Status.SUCCESS.value,
            partition_state.c.current_run_id != run_id,
            or_(partition_state.c.current_run_id > run_id, holds.c.newest_run_id >= run_id),
        )
    )
    for row in connection.execute(query):
        yield PartitionKey(*row)
