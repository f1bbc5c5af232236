"""Plans as they are kept: rows to plans and back, and their states."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select, update

from sealbook.errors import Conflict, IllegalMove, NotFound
from sealbook.ledger.schedule.tables import plan
from sealbook.ledger.work.tables import work
from sealbook.model.keys import PartitionKey, parse_date
from sealbook.model.plans import Plan, PlanKind, PlanRequest, PlanState
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName, Span

COLUMNS = [
    plan.c[name]
    for name in (
        *("id", "kind", "name", "state", "partitions", "requests", "actor", "reason"),
        *("previewed_at", "carried_out_at", "ended_at"),
    )
]


def plan_of(row: Row[Any]) -> Plan:
    """Make what the columns of a plan say."""
    number, kind, name, state, *rest = tuple(row)
    return Plan(number, PlanKind(kind), name, PlanState(state), *rest)


def lock_plan(connection: Connection, plan_id: int, *expected: PlanState) -> Plan:
    """Lock a plan, and return it; IllegalMove if it is in another state than expected."""
    query = select(*COLUMNS).where(plan.c.id == plan_id).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise unknown_plan(plan_id)
    found = plan_of(row)
    if found.state not in expected:
        raise IllegalMove(
            f"plan {plan_id} is {found.state}, not {' or '.join(expected)}",
            remedy="A plan is carried out once: preview it again."
            if PlanState.PREVIEWED in expected
            else f"`sealbook backfill show {plan_id}` says how far it is.",
        )
    return found


def unknown_plan(plan_id: int) -> NotFound:
    """Say that there is no such plan."""
    return NotFound(f"there is no plan {plan_id}", remedy="Previews are kept for a week: make a new one.")


def set_state(
    connection: Connection, plan_id: int, state: PlanState, at: datetime, *, carried_out: bool = False
) -> Plan:
    """Move a plan to another state, and return it."""
    ended = state in (PlanState.DONE, PlanState.CANCELLED)
    changed = update(plan).where(plan.c.id == plan_id).values(state=state.value)
    if carried_out:
        changed = changed.values(carried_out_at=at)
    if ended:
        changed = changed.values(ended_at=at)
    return plan_of(connection.execute(changed.returning(*COLUMNS)).one())


def end_done(connection: Connection, at: datetime) -> list[Plan]:
    """End the plans of which nothing is open any more, and return them."""
    left = select(work.c.lane).where(work.c.plan_id == plan.c.id).exists()
    query = select(plan.c.id).where(plan.c.state == PlanState.OPEN.value, ~left).with_for_update()
    done = connection.execute(query).scalars().all()
    return [set_state(connection, each, PlanState.DONE, at) for each in done]


def refuse_taken_name(connection: Connection, wanted: Plan, at: datetime) -> None:
    """Refuse a plan of the name of one that is at work."""
    if wanted.name is None:
        return
    end_done(connection, at)
    is_open = plan.c.state.in_([PlanState.OPEN.value, PlanState.PAUSED.value])
    taken = connection.execute(select(plan.c.id).where(plan.c.name == wanted.name, is_open)).scalar()
    if taken is not None:
        raise Conflict(
            f"plan {taken} is at work under the name {wanted.name}",
            remedy="Give another name, or wait for it: `sealbook backfill show` says how far it is.",
        )


def request_to_dict(request: PlanRequest) -> dict[str, object]:
    """Return a request as JSON holds it."""
    return {
        "selection": request.selection.to_dict(),
        "spans": [[*span[:3], span.first.isoformat(), span.last.isoformat()] for span in request.spans],
        "force": request.force,
        "costs": [[*asset, cost] for asset, cost in request.costs.items()],
        "without": [str(key) for key in request.without],
    }


def request_from_dict(kind: PlanKind, kept: Mapping[str, Any]) -> PlanRequest:
    """Return the request that was kept."""
    return PlanRequest(
        kind,
        Selection.from_dict(kept["selection"]),
        tuple(
            Span(source, customer_id, query_name, parse_date("first", first), parse_date("last", last))
            for source, customer_id, query_name, first, last in kept["spans"]
        ),
        kept["force"],
        {AssetName(source, query): cost for source, query, cost in kept["costs"]},
        tuple(map(PartitionKey.parse, kept["without"])),
    )
