"""What carrying a plan out does to its partitions, by its kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, tuple_, update

from sealbook.errors import Drifted
from sealbook.ledger.db.bulk import given_rows
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.states.audit import log_override
from sealbook.ledger.states.overrides import OverrideWriter
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.adding import NewWork, add
from sealbook.ledger.work.rows import OpenWork, encode_keys
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey, Status
from sealbook.model.plans import Plan, PlanItem, PlanKind, PlanRequest
from sealbook.model.work import Lane, Work, WorkKind, clear_stop, mark_terminal


def carry_out(
    connection: Connection,
    plan: Plan,
    request: PlanRequest,
    items: Sequence[PlanItem],
    overrides: OverrideWriter,
    at: datetime,
) -> None:
    """Do what a plan says about each of its partitions, and log it (R-CTL-3)."""
    keys = [item.key for item in items]
    chosen_by: dict[str, object] = {"plan": plan.id, "name": plan.name, **request.selection.to_dict()}
    if plan.kind is PlanKind.RETRY:
        results = overrides.requeue_in(connection, keys, plan.actor, plan.reason, chosen_by)
        _refuse_drift(plan, [result.refused for result in results if result.refused is not None])
        _claim_for_plan(connection, plan, keys)
        return
    log_override(
        connection,
        plan.kind.value,
        keys,
        actor=plan.actor,
        reason=plan.reason,
        at=at,
        filter=chosen_by,
    )
    match plan.kind:
        case PlanKind.BACKFILL:
            _backfill(connection, plan, request, keys, at)
        case PlanKind.REPROCESS:
            _reprocess(connection, plan, request, items, at)
        case _:
            _stop_or_clear(connection, plan, keys, at)


def _backfill(
    connection: Connection, plan: Plan, request: PlanRequest, keys: Sequence[PartitionKey], at: datetime
) -> None:
    new = [_fetch(key, Lane.BACKFILL, request) for key in keys]
    added = add(connection, new, at, plan_id=plan.id)
    if added < len(new):
        _refuse_drift(plan, [f"work was opened of {len(new) - added} of them meanwhile"])


def _reprocess(
    connection: Connection, plan: Plan, request: PlanRequest, items: Sequence[PlanItem], at: datetime
) -> None:
    """Have another run fetched, also where something is open: what somebody is at, stays theirs."""
    lanes = {
        item.key: Lane.REFRESH if item.standing.startswith(Status.SUCCESS) else Lane.RETRY for item in items
    }
    found = work_rows.lock(connection, lanes)
    again = [
        replace(each, work=Work(key, lanes[key], WorkKind.FETCH, at), plan_id=plan.id).going()
        for key, each in found.items()
    ]
    work_rows.write(connection, again)
    new = [_fetch(key, lane, request) for key, lane in lanes.items() if key not in found]
    add(connection, new, at, plan_id=plan.id)


def _stop_or_clear(connection: Connection, plan: Plan, keys: Sequence[PartitionKey], at: datetime) -> None:
    found = work_rows.lock(connection, keys)
    _refuse_drift(plan, [f"{key} is not open any more" for key in keys if key not in found])
    changed = _marked if plan.kind is PlanKind.MARK else _cleared
    work_rows.write(connection, [changed(each, plan, at) for each in found.values()])


def _marked(each: OpenWork, plan: Plan, at: datetime) -> OpenWork:
    """Give work up: whoever is at it loses it."""
    given_up = replace(each, work=mark_terminal(each.work))
    return given_up.stopped(at, plan.actor, plan.reason).let_go()


def _cleared(each: OpenWork, plan: Plan, at: datetime) -> OpenWork:
    return replace(each, work=clear_stop(each.work, at), plan_id=plan.id).going()


def _fetch(key: PartitionKey, lane: Lane, request: PlanRequest) -> NewWork:
    cost = request.cost(key.source, key.query_name)
    return NewWork(key.source, key.customer_id, key.query_name, key.logical_date, lane, WorkKind.FETCH, cost)


def _claim_for_plan(connection: Connection, plan: Plan, keys: Sequence[PartitionKey]) -> None:
    """Have open work count for a plan."""
    columns = [work.c[name] for name in KEY]
    given = given_rows(connection.dialect.name, columns)
    named = tuple_(*columns).in_(given.select())
    connection.execute(update(work).where(named).values(plan_id=plan.id), encode_keys(keys))


def _refuse_drift(plan: Plan, differences: Sequence[str]) -> None:
    """Refuse what is another by the time it is locked than when it was looked at a moment before."""
    if differences:
        raise drifted(plan.id, differences)


def drifted(plan_id: int, differences: Sequence[str]) -> Drifted:
    """Say that a plan is not what would be done now."""
    shown = "; ".join(differences[:_SHOWN])
    more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
    return Drifted(
        f"plan {plan_id} is refused: since its preview the world has moved: {shown}{more}",
        differences,
        remedy="Nothing was done. Preview it again, look at it, and carry that out.",
    )


_SHOWN = 10
