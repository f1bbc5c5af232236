"""The operator's port: plans are previewed, kept by their ids, and carried out as previewed (R-CTL-11)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, or_, select, update

from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.schedule import deeds
from sealbook.ledger.schedule.plan_items import differences, find_items, pack, unpack
from sealbook.ledger.schedule.plan_rows import (
    COLUMNS,
    end_done,
    lock_plan,
    plan_of,
    refuse_taken_name,
    request_from_dict,
    request_to_dict,
    set_state,
)
from sealbook.ledger.schedule.tables import plan
from sealbook.ledger.states.audit import Action, check_author, log_override
from sealbook.ledger.states.overrides import OverrideWriter
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey
from sealbook.model.keys import check_name
from sealbook.model.plans import Plan, PlanItem, PlanRequest, PlanState, Previewed, requests_of
from sealbook.model.ranges import DAY_BY_DAY, DaysPerRequest

_KEPT = timedelta(days=7)
"""How long a preview is kept that nobody has carried out."""


class PlanWriter:
    """The port of operators. Whatever they do is logged, with who and why."""

    def __init__(self, database: Database, clock: LedgerClock, overrides: OverrideWriter) -> None:
        self._database = database
        self._clock = clock
        self._overrides = overrides

    def preview(
        self,
        request: PlanRequest,
        *,
        actor: str,
        reason: str,
        name: str | None = None,
        ranges: DaysPerRequest = DAY_BY_DAY,
    ) -> Previewed:
        """Find what a request would do, and keep that as a plan for a week; nothing else is changed.

        By `ranges` it is said what that costs.
        """
        check_author(actor, reason)
        if name is not None:
            check_name("name", name)  # and no number, as ids are

        def keep(connection: Connection) -> Previewed:
            at = self._clock.now(connection)
            old = (plan.c.state == PlanState.PREVIEWED.value, plan.c.previewed_at < at - _KEPT)
            connection.execute(delete(plan).where(*old))
            items, left_out = find_items(connection, request)
            packed, digest = pack(items)
            kept = insert(plan).values(
                kind=request.kind.value,
                name=name,
                state=PlanState.PREVIEWED.value,
                request=request_to_dict(request),
                packed=packed,
                digest=digest,
                partitions=len(items),
                requests=_requests(request, items, ranges),
                actor=actor,
                reason=reason,
                previewed_at=at,
            )
            kept_plan = plan_of(connection.execute(kept.returning(*COLUMNS)).one())
            return Previewed(kept_plan, items, left_out)

        return self._database.write(keep)

    def carry_out(self, plan_id: int, *, actor: str | None = None) -> Plan:
        """Do what was previewed, all of it; or nothing, and say what is another by now (Drifted).

        The log names the actor, if it is another than who previewed it.
        """

        def work_on(connection: Connection) -> Plan:
            kept = lock_plan(connection, plan_id, PlanState.PREVIEWED)
            query = select(plan.c.request, plan.c.digest, plan.c.packed).where(plan.c.id == plan_id)
            asked, digest, packed = connection.execute(query).one()
            request, previewed = request_from_dict(kept.kind, asked), unpack(packed)
            # From here on nobody takes or changes what is open of it.
            found = work_rows.lock(connection, [item.key for item in previewed])
            items, _ = find_items(connection, request)
            if pack(items)[1] != digest:
                raise deeds.drifted(plan_id, differences(previewed, items))
            at = self._clock.now(connection)
            lasts = bool(items) and kept.kind.lasts
            if lasts:
                refuse_taken_name(connection, kept, at)
            if items:
                by = replace(kept, actor=actor or kept.actor)
                deeds.carry_out(connection, by, request, items, found, self._overrides, at)
            state = PlanState.OPEN if lasts else PlanState.DONE
            return set_state(connection, plan_id, state, at, carried_out=True)

        return self._database.write(work_on)

    def pause(self, plan_id: int, *, actor: str, reason: str) -> Plan:
        """Claim nothing more of a plan until it resumes; what is being worked on goes on."""
        return self._change(plan_id, PlanState.OPEN, PlanState.PAUSED, actor, reason)

    def resume(self, plan_id: int, *, actor: str, reason: str) -> Plan:
        """Go on with a plan that was paused."""
        return self._change(plan_id, PlanState.PAUSED, PlanState.OPEN, actor, reason)

    def cancel(self, plan_id: int, *, actor: str, reason: str) -> Plan:
        """Have no more fetched of a plan; who works on that loses it, and what is done stays done.

        Days that a backfill leaves undone are given up until somebody wants them again: else the next round
        would open them anew. What had stopped stays so; what is fetched is still judged and loaded.
        """
        check_author(actor, reason)

        def close(connection: Connection) -> Plan:
            kept = lock_plan(connection, plan_id, PlanState.OPEN, PlanState.PAUSED)
            at = self._clock.now(connection)
            by = replace(kept, actor=actor, reason=reason)
            _log(connection, Action.CANCEL, deeds.give_up_plan(connection, by, at), by, at)
            return set_state(connection, plan_id, PlanState.CANCELLED, at)

        return self._database.write(close)

    def retry_failed(
        self, plan_id: int, *, actor: str, reason: str, dry_run: bool = False
    ) -> list[PartitionKey]:
        """Take up at once what has failed of a plan: what has stopped, and what waits for another try.

        Returns which partitions that are; a dry run only does that.
        """
        check_author(actor, reason)

        def take_up(connection: Connection) -> list[PartitionKey]:
            kept = lock_plan(connection, plan_id, PlanState.OPEN, PlanState.PAUSED)
            at = self._clock.now(connection)
            rows = select(work).where(
                work.c.plan_id == plan_id,
                work.c.holder.is_(None),
                or_(work.c.stop.is_not(None), work.c.tries > 0),
            )
            locked = rows.order_by(*(work.c[name] for name in KEY)).with_for_update()
            failed = list(map(work_rows.read_row, connection.execute(locked).all()))
            keys = [each.key for each in failed]
            if keys and not dry_run:
                work_rows.write(connection, [deeds.taken_up(each, at) for each in failed])
                _log(connection, Action.CLEAR, keys, replace(kept, actor=actor, reason=reason), at)
            return keys

        return self._database.write(take_up)

    def end_done(self) -> list[Plan]:
        """End the plans of which nothing is open any more, and return them; what has stopped, stays open."""
        return self._database.write(lambda connection: end_done(connection, self._clock.now(connection)))

    def _change(self, plan_id: int, before: PlanState, after: PlanState, actor: str, reason: str) -> Plan:
        check_author(actor, reason)
        paused = after is PlanState.PAUSED

        def change(connection: Connection) -> Plan:
            kept = lock_plan(connection, plan_id, before)
            at = self._clock.now(connection)
            connection.execute(update(work).where(work.c.plan_id == plan_id).values(paused=paused))
            action = Action.PAUSE if paused else Action.RESUME
            _log(connection, action, [], replace(kept, actor=actor, reason=reason), at)
            return set_state(connection, plan_id, after, at)

        return self._database.write(change)


def _log(
    connection: Connection, action: Action, keys: Iterable[PartitionKey], by: Plan, at: datetime
) -> None:
    """Log what was done to a plan, and by whom."""
    named: dict[str, object] = {"plan": by.id, "kind": by.kind.value, "name": by.name}
    log_override(connection, action, keys, actor=by.actor, reason=by.reason, at=at, filter=named)


def _requests(request: PlanRequest, items: Sequence[PlanItem], ranges: DaysPerRequest) -> int:
    """Return what a plan costs at most."""
    found = requests_of(request.kind, items, ranges)
    return sum(request.cost(*name) * requests for name, requests in found.items())
