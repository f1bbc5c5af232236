"""What carrying a plan out does to its partitions, by its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, delete, false, select, update

from sealbook.errors import Drifted
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.states.audit import Action, log_override
from sealbook.ledger.states.overrides import OverrideWriter
from sealbook.ledger.states.tables import partition_state
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.adding import NewWork, add
from sealbook.ledger.work.rows import OpenWork
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey, Status
from sealbook.model.plans import Plan, PlanItem, PlanKind, PlanRequest
from sealbook.model.retry import Stop
from sealbook.model.work import Lane, Work, WorkKind, clear_stop, mark_terminal

OpenWorks = Mapping[PartitionKey, OpenWork]


def carry_out(
    connection: Connection,
    plan: Plan,
    request: PlanRequest,
    items: Sequence[PlanItem],
    found: OpenWorks,
    overrides: OverrideWriter,
    at: datetime,
) -> None:
    """Do what a plan says about each of its partitions, and log it (R-CTL-3).

    `found` is what is open of them, and locked.
    """
    keys = [item.key for item in items]
    chosen_by: dict[str, object] = {"plan": plan.id, "name": plan.name, **request.selection.to_dict()}
    if plan.kind is PlanKind.RETRY:
        results = overrides.requeue_in(connection, keys, plan.actor, plan.reason, chosen_by)
        _refuse_drift(plan, [result.refused for result in results if result.refused is not None])
        return
    log_override(
        connection,
        Action(plan.kind.value),
        keys,
        actor=plan.actor,
        reason=plan.reason,
        at=at,
        filter=chosen_by,
    )
    match plan.kind:
        case PlanKind.BACKFILL:
            _backfill(connection, plan, request, keys, found, at)
        case PlanKind.REPROCESS:
            _reprocess(connection, plan, request, items, found, at)
        case PlanKind.MARK:
            _mark(connection, plan, request, keys, found, at)
        case _:
            work_rows.write(connection, [taken_up(each, at) for each in found.values()])


def _backfill(
    connection: Connection,
    plan: Plan,
    request: PlanRequest,
    keys: Sequence[PartitionKey],
    found: OpenWorks,
    at: datetime,
) -> None:
    """Open what is not, and take over what is open for nobody else: it stays in its lane, and is ready."""
    taken = [
        replace(each, work=clear_stop(each.work, at), plan_id=plan.id, paused=False).going()
        for each in found.values()
    ]
    work_rows.write(connection, taken)
    new = [_fetch(key, Lane.BACKFILL, request) for key in keys if key not in found]
    added = add(connection, new, at, plan_id=plan.id)
    if added < len(new):
        _refuse_drift(plan, [f"work was opened of {len(new) - added} of them meanwhile"])


def _reprocess(
    connection: Connection,
    plan: Plan,
    request: PlanRequest,
    items: Sequence[PlanItem],
    found: OpenWorks,
    at: datetime,
) -> None:
    """Have another run fetched, also where something is open: what somebody is at, stays theirs."""
    lanes = {
        item.key: Lane.REFRESH if item.standing.startswith(Status.SUCCESS) else Lane.RETRY for item in items
    }
    again = [
        replace(each, work=Work(key, lanes[key], WorkKind.FETCH, at), plan_id=plan.id, paused=False).going()
        for key, each in found.items()
    ]
    work_rows.write(connection, again)
    new = [_fetch(key, lane, request) for key, lane in lanes.items() if key not in found]
    add(connection, new, at, plan_id=plan.id)


def _mark(
    connection: Connection,
    plan: Plan,
    request: PlanRequest,
    keys: Sequence[PartitionKey],
    found: OpenWorks,
    at: datetime,
) -> None:
    """Give partitions up, those too that failed before there was any schedule: who is at one loses it."""
    failed = (
        OpenWork(Work(key, Lane.RETRY, WorkKind.FETCH, at), cost=request.cost(key.source, key.query_name))
        for key in keys
        if key not in found
    )
    given_up = (
        replace(each, work=mark_terminal(each.work)).stopped(at, plan.actor, plan.reason).let_go()
        for each in (*found.values(), *failed)
    )
    work_rows.write(connection, given_up)


def give_up_plan(connection: Connection, plan: Plan, at: datetime) -> list[PartitionKey]:
    """Close the fetches of a plan, and return of which partitions: they are somebody's no more.

    What a backfill was to fetch of days that lack stays, as given up; what had stopped stays as it is.
    """
    of_plan, key = work.c.plan_id == plan.id, [work.c[name] for name in KEY]
    fetches = (of_plan, work.c.kind == WorkKind.FETCH.value)
    good = select(partition_state.c.status).where(
        same(partition_state, work), partition_state.c.status == Status.SUCCESS.value
    )
    lacks = ~good.exists() if plan.kind is PlanKind.BACKFILL else false()
    closed = delete(work).where(*fetches, ~lacks).returning(*key)
    given_up = (
        update(work)
        .where(*fetches, work.c.stop.is_(None))
        .values(
            stop=Stop.MANUAL.value,
            stopped_by=plan.actor,
            stopped_reason=plan.reason,
            stopped_at=at,
            holder=None,
            claimed_at=None,
            expires_at=None,
        )
        .returning(*key)
    )
    rows = [*connection.execute(closed), *connection.execute(given_up)]
    connection.execute(update(work).where(of_plan).values(paused=False))
    return sorted(PartitionKey(*row) for row in rows)


def taken_up(each: OpenWork, at: datetime) -> OpenWork:
    """Return work that had stopped or waits as ready, for the plan that it belongs to, if to any."""
    return replace(each, work=clear_stop(each.work, at)).going()


def _fetch(key: PartitionKey, lane: Lane, request: PlanRequest) -> NewWork:
    cost = request.cost(key.source, key.query_name)
    return NewWork(key.source, key.customer_id, key.query_name, key.logical_date, lane, WorkKind.FETCH, cost)


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
