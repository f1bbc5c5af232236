"""What the log says of partitions in their runs: which seals it tells of, and which failures stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    FromClause,
    Select,
    and_,
    exists,
    literal_column,
    or_,
    select,
)

from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.events.rows import SELECT_EVENTS
from sealbook.ledger.events.tables import run_event, run_head
from sealbook.model import PartitionKey, RunId
from sealbook.model.events import EventType
from sealbook.model.partition_events import Counted, PartitionFailed, PartitionPublished, PartitionSealed

PartitionRun = tuple[PartitionKey, RunId]
FactT = TypeVar("FactT", bound=PartitionSealed | PartitionFailed | PartitionPublished)

_OVERTAKING = tuple(
    kind.value
    for kind in (EventType.PARTITION_SEALED, EventType.PARTITION_FAILED, EventType.PARTITION_PUBLISHED)
)


def told_sealed(connection: Connection, runs: Iterable[PartitionRun]) -> set[PartitionRun]:
    """Return those of some runs of partitions of which the log says that they are sealed."""
    return _matching(connection, _sealed(connection.dialect.name), runs)


def counted_once(connection: Connection, facts: Sequence[FactT]) -> list[FactT]:
    """Return facts that say so where they replace a failure of the same run, which then counts no more.

    For a writer who has locked the runs, and appends the facts next.
    """
    query = _failed(connection.dialect.name)
    failed = _matching(connection, query, ((fact.key, fact.run_id) for fact in facts))
    return [
        replace(fact, replaces=Counted.FAILED) if (fact.key, fact.run_id) in failed else fact
        for fact in facts
    ]


def _matching(connection: Connection, query: Executable, runs: Iterable[PartitionRun]) -> set[PartitionRun]:
    asked = {(str(key), str.__str__(run_id)): (key, run_id) for key, run_id in runs}
    if not asked:
        return set()
    rows = encode_rows({"partition": partition, "run_id": run_id} for partition, run_id in asked)
    return {asked[partition, run_id] for partition, run_id in connection.execute(query, rows)}


def last_failures(*asked: ColumnElement[bool]) -> Select[Any]:
    """Select the failures, of partitions that are asked for, in which the last attempt ended, in key order.

    A later fact of the same run overtakes a failure, and any of a newer run does.
    """
    own, other = run_head.alias("own"), run_head.alias("other")
    later = run_event.alias("later")
    overtaken = exists(
        select(later.c.position)
        .join(other, other.c.number == later.c.run_number)
        .join(own, own.c.number == run_event.c.run_number)
        .where(
            later.c.partition == run_event.c.partition,
            later.c.event_type.in_(_OVERTAKING),
            or_(
                other.c.run_id > own.c.run_id,
                and_(other.c.run_id == own.c.run_id, later.c.position > run_event.c.position),
            ),
        )
        .correlate(run_event)
    )
    failed = is_kind(run_event, EventType.PARTITION_FAILED)
    return SELECT_EVENTS.where(failed, run_event.c.partition.is_not(None), *asked, ~overtaken).order_by(
        run_event.c.partition
    )


def is_kind(event: FromClause, kind: EventType) -> ColumnElement[bool]:
    """Say that an event is of a kind; spelt out, so that the database sees which index serves."""
    return event.c.event_type == literal_column(f"'{kind.value}'")


@cache
def _sealed(dialect: str) -> Executable:
    return _said_of_given(dialect, EventType.PARTITION_SEALED)


@cache
def _failed(dialect: str) -> Executable:
    later = run_event.alias("later")
    overtaken = exists(
        select(later.c.position).where(
            later.c.partition == run_event.c.partition,
            later.c.run_number == run_event.c.run_number,
            later.c.position > run_event.c.position,
            later.c.event_type.in_(_OVERTAKING),
        )
    )
    return _said_of_given(dialect, EventType.PARTITION_FAILED).where(~overtaken)


def _said_of_given(dialect: str, kind: EventType) -> Select[Any]:
    """Select those runs of partitions, of some that are given, that have an event of a kind."""
    given = given_rows(dialect, [run_event.c.partition, run_head.c.run_id])
    return (
        select(*given.c)
        .distinct()
        .join(run_head, run_head.c.run_id == given.c.run_id)
        .join(
            run_event,
            and_(
                run_event.c.partition == given.c.partition,
                run_event.c.run_number == run_head.c.number,
                is_kind(run_event, kind),
            ),
        )
    )
