"""What a read gets of each partition that it asks for, and why it gets no more (R-CON-3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, literal, select

from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.pointers.conditions import CURRENT, POINTED, READABLE, pointer_of
from sealbook.ledger.pointers.tables import pointer
from sealbook.ledger.states.tables import partition_state
from sealbook.model import RunId, Status
from sealbook.model.publication import Coverage, CoverageKind, Published
from sealbook.model.status import Availability

_ever = pointer.alias("ever")
AVAILABILITY = case(
    (and_(READABLE, CURRENT), literal(Availability.PUBLISHED.value)),
    (READABLE, literal(Availability.BEHIND.value)),
    (POINTED, literal(Availability.HIDDEN.value)),
    (select(_ever.c.run_id).where(same(_ever, partition_state)).exists(), literal(Availability.HIDDEN.value)),
    else_=literal(Availability.NONE.value),
)
"""What consumers get of a partition, whatever became of attempts at it (R-PST-9)."""


def known(*asked: ColumnElement[bool]) -> Select[Any]:
    """Select what `covered` needs of every partition that has a state, in key order."""
    state = partition_state.c
    return (
        select(*(state[name] for name in KEY), state.status, state.current_run_id, state.error_message)
        .add_columns(pointer.c.run_id, AVAILABILITY)
        .outerjoin(pointer, pointer_of(partition_state))
        .where(*asked)
        .order_by(*(state[name] for name in KEY))
    )


def covered(
    source: str,
    customer_id: str,
    query_name: str,
    logical_date: date,
    status: Status,
    current_run_id: RunId | None,
    error_message: str | None,
    pointed_run_id: RunId | None,
    availability: str,
) -> Coverage:
    """Say what a read gets of a partition that has a state."""
    key = source, customer_id, query_name, logical_date
    waiting = (
        f"run {current_run_id} is accepted, and not loaded yet"
        if status is Status.SUCCESS
        else "no run is accepted; the next attempt is awaited"
    )
    if availability == Availability.PUBLISHED:
        return Coverage(*key, CoverageKind.PUBLISHED, pointed_run_id)
    if availability == Availability.BEHIND:
        return Coverage(*key, CoverageKind.BEHIND, pointed_run_id, waiting)
    if status is Status.FAILED:
        return Coverage(*key, CoverageKind.FAILED, None, error_message)
    if availability == Availability.HIDDEN:
        return Coverage(*key, CoverageKind.HIDDEN, None, f"what was published is withdrawn; {waiting}")
    return Coverage(*key, CoverageKind.PENDING, None, waiting)


def covered_at(each: Published) -> Coverage:
    """Say what a read at a cut gets of a partition that could be read then."""
    if each.withdrawn is None:
        return Coverage(*each[:4], CoverageKind.PUBLISHED, each.run_id)
    why = f"run {each.run_id} was {each.withdrawn} since; the cut still reads it"
    return Coverage(*each[:4], CoverageKind.WITHDRAWN, each.run_id, why)


def left_out_if_strict(each: Coverage) -> Coverage:
    """Say what a strict read gets of a partition: nothing, where it is behind or withdrawn (R-CON-2)."""
    if each.kind not in (CoverageKind.BEHIND, CoverageKind.WITHDRAWN):
        return each
    return each._replace(run_id=None, why=f"{each.why}; a strict read leaves out run {each.run_id}")


def every_partition(
    found: Iterable[Coverage],
    customers: Iterable[str],
    since: date,
    until: date,
    missing: Callable[[str, date], Coverage],
) -> Iterator[Coverage]:
    """Put what is missing between what was found, which is a part of it, for all in key order."""
    remaining = iter(found)
    following = next(remaining, None)
    for customer in sorted(set(customers)):
        for number in range((until - since).days + 1):
            day = since + timedelta(days=number)
            if following is not None and (following.customer_id, following.logical_date) == (customer, day):
                yield following
                following = next(remaining, None)
            else:
                yield missing(customer, day)
