"""The operator's port: plans are previewed, kept by their ids, and carried out as previewed (R-CTL-11)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Connection, delete, insert, select, update

from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.schedule import deeds
from sealbook.ledger.schedule.plan_items import differences, find_items, pack, unpack
from sealbook.ledger.schedule.plan_rows import (
    COLUMNS,
    lock_plan,
    plan_of,
    request_from_dict,
    request_to_dict,
    set_state,
)
from sealbook.ledger.schedule.tables import plan
from sealbook.ledger.states.audit import check_author, log_override
from sealbook.ledger.states.overrides import OverrideWriter
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey
from sealbook.model.keys import check_name
from sealbook.model.plans import Plan, PlanItem, PlanKind, PlanRequest, PlanState

_KEPT = timedelta(days=7)
"""How long a preview is kept that nobody has carried out."""


class PlanWriter:
    """The port of operators. Whatever they do is logged, with who and why."""

    def __init__(self, database: Database, clock: LedgerClock, overrides: OverrideWriter) -> None:
        self._database = database
        self._clock = clock
        self._overrides = overrides

    def preview(
        self, request: PlanRequest, *, actor: str, reason: str, name: str | None = None
    ) -> tuple[Plan, list[PlanItem]]:
        """Find what a request would do, and keep that as a plan for a week; nothing else is changed."""
        check_author(actor, reason)
        if name is not None:
            check_name("name", name)

        def keep(connection: Connection) -> tuple[Plan, list[PlanItem]]:
            at = self._clock.now(connection)
            old = (plan.c.state == PlanState.PREVIEWED.value, plan.c.previewed_at < at - _KEPT)
            connection.execute(delete(plan).where(*old))
            items = find_items(connection, request)
            packed, digest = pack(items)
            kept = insert(plan).values(
                kind=request.kind.value,
                name=name,
                state=PlanState.PREVIEWED.value,
                request=request_to_dict(request),
                packed=packed,
                digest=digest,
                partitions=len(items),
                requests=_requests(request, items),
                actor=actor,
                reason=reason,
                previewed_at=at,
            )
            return plan_of(connection.execute(kept.returning(*COLUMNS)).one()), items

        return self._database.write(keep)

    def carry_out(self, plan_id: int) -> Plan:
        """Do what was previewed, all of it; or nothing, and say what is another by now (Drifted)."""

        def work_on(connection: Connection) -> Plan:
            kept = lock_plan(connection, plan_id, PlanState.PREVIEWED)
            query = select(plan.c.request, plan.c.digest, plan.c.packed).where(plan.c.id == plan_id)
            asked, digest, packed = connection.execute(query).one()
            request = request_from_dict(kept.kind, asked)
            items = find_items(connection, request)
            if pack(items)[1] != digest:
                raise deeds.drifted(plan_id, differences(unpack(packed), items))
            at = self._clock.now(connection)
            if items:
                deeds.carry_out(connection, kept, request, items, self._overrides, at)
            is_done = not items or kept.kind is PlanKind.MARK
            state = PlanState.DONE if is_done else PlanState.OPEN
            return set_state(connection, plan_id, state, at, carried_out=True)

        return self._database.write(work_on)

    def pause(self, plan_id: int, *, actor: str, reason: str) -> Plan:
        """Claim nothing more of a plan until it resumes; what is being worked on goes on."""
        return self._change(plan_id, PlanState.OPEN, PlanState.PAUSED, actor, reason)

    def resume(self, plan_id: int, *, actor: str, reason: str) -> Plan:
        """Go on with a plan that was paused."""
        return self._change(plan_id, PlanState.PAUSED, PlanState.OPEN, actor, reason)

    def cancel(self, plan_id: int, *, actor: str, reason: str) -> Plan:
        """Close what is open of a plan; who works on some of it loses it, and what is done stays done."""
        check_author(actor, reason)

        def close(connection: Connection) -> Plan:
            kept = lock_plan(connection, plan_id, PlanState.OPEN, PlanState.PAUSED)
            at = self._clock.now(connection)
            closed = delete(work).where(work.c.plan_id == plan_id).returning(*(work.c[name] for name in KEY))
            keys = [PartitionKey(*row) for row in connection.execute(closed).all()]
            log_override(
                connection, "cancel", keys, actor=actor, reason=reason, at=at, filter=_plan_filter(kept)
            )
            return set_state(connection, plan_id, PlanState.CANCELLED, at)

        return self._database.write(close)

    def end_done(self) -> list[Plan]:
        """End the plans of which nothing is open any more, and return them; what has stopped, stays open."""

        def end(connection: Connection) -> list[Plan]:
            left = select(work.c.lane).where(work.c.plan_id == plan.c.id).exists()
            query = select(plan.c.id).where(plan.c.state == PlanState.OPEN.value, ~left).with_for_update()
            done = connection.execute(query).scalars().all()
            at = self._clock.now(connection)
            return [set_state(connection, each, PlanState.DONE, at) for each in done]

        return self._database.write(end)

    def _change(self, plan_id: int, before: PlanState, after: PlanState, actor: str, reason: str) -> Plan:
        check_author(actor, reason)
        paused = after is PlanState.PAUSED

        def change(connection: Connection) -> Plan:
            kept = lock_plan(connection, plan_id, before)
            at = self._clock.now(connection)
            connection.execute(update(work).where(work.c.plan_id == plan_id).values(paused=paused))
            log_override(
                connection,
                "pause" if paused else "resume",
                [],
                actor=actor,
                reason=reason,
                at=at,
                filter=_plan_filter(kept),
            )
            return set_state(connection, plan_id, after, at)

        return self._database.write(change)


def _plan_filter(kept: Plan) -> dict[str, object]:
    return {"plan": kept.id, "kind": kept.kind.value, "name": kept.name}


def _requests(request: PlanRequest, items: Sequence[PlanItem]) -> int:
    """Return what a plan costs at most; to give work up costs nothing."""
    if request.kind is PlanKind.MARK:
        return 0
    return sum(request.cost(item.key.source, item.key.query_name) for item in items)
