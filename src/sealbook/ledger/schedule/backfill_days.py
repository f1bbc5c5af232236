"""Which days of a backfill are to be fetched, and why the others are not."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Date, FromClause, Select, and_, select

from sealbook.errors import InvalidInput
from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.db.types import Name
from sealbook.ledger.schedule.tables import plan
from sealbook.ledger.states.tables import partition_state
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey, Status
from sealbook.model.plans import FENCE, LeftOut, PlanItem, PlanRequest, PlanState
from sealbook.model.retry import Stop
from sealbook.model.words import counted
from sealbook.model.work import WorkKind

_ABSENT = (None, 0)


class _Open(NamedTuple):
    """What is open of a day, and where the plan is that it belongs to."""

    kind: str
    stop: str | None
    holder: str | None
    fence: int
    plan_state: str | None

    @property
    def left_out(self) -> LeftOut | None:
        """Why a backfill leaves it alone; None: it waits for no other plan, and is taken over.

        What a cancelled plan left undone is given up until another one wants it.
        """
        if self.stop is not None:
            cancelled = self.stop == Stop.MANUAL and self.plan_state == PlanState.CANCELLED
            return None if cancelled else LeftOut.STOPPED
        others = self.plan_state in (PlanState.OPEN, PlanState.PAUSED)
        waits = self.kind == WorkKind.FETCH and self.holder is None and not others
        return None if waits else LeftOut.OPEN


def find_days(connection: Connection, request: PlanRequest) -> tuple[list[PlanItem], Counter[LeftOut]]:
    """Return the days of spans that lack, or all with force, and count what is left alone."""
    _check_spans(request)
    dialect = connection.dialect.name
    spans = encode_rows(span._asdict() for span in request.spans)
    states = {
        tuple(key): (status, attempts)
        for *key, status, attempts in map(tuple, connection.execute(_states_in(dialect), spans).all())
    }
    is_open = {
        tuple(row[:4]): _Open(*row[4:])
        for row in map(tuple, connection.execute(_open_in(dialect), spans).all())
    }
    items: list[PlanItem] = []
    left_out: Counter[LeftOut] = Counter()
    for span in sorted(request.spans):
        for offset in range(span.days):
            key = (*span[:3], span.first + timedelta(days=offset))
            status, attempts = states.get(key, _ABSENT)
            found = is_open.get(key)
            if status == Status.SUCCESS.value and not request.force:
                left_out[LeftOut.GOOD] += 1
            elif found is not None and (why := found.left_out) is not None:
                left_out[why] += 1
            else:
                fence = None if found is None else found.fence
                items.append(PlanItem(PartitionKey(*key), standing(status, attempts, fence)))
    return items, left_out


def standing(status: str | None, attempts: int, fence: int | None) -> str:
    """Say how a partition stands: its state, and the fence of what is open of it."""
    state = "never judged" if status is None else f"{status} after {counted(attempts, 'attempt')}"
    return state if fence is None else f"{state}{FENCE}{fence}"


def _in_spans(dialect: str, table: FromClause) -> tuple[FromClause, Any]:
    names = [Column(name, Name) for name in KEY[:3]]
    spans = given_rows(dialect, [*names, Column("first", Date), Column("last", Date)])
    within = and_(
        *(table.c[name] == spans.c[name] for name in KEY[:3]),
        table.c.logical_date >= spans.c.first,
        table.c.logical_date <= spans.c.last,
    )
    return spans, within


@cache
def _states_in(dialect: str) -> Select[Any]:
    spans, within = _in_spans(dialect, partition_state)
    columns = [partition_state.c[name] for name in (*KEY, "status", "attempt_count")]
    return select(*columns).join(spans, within)


@cache
def _open_in(dialect: str) -> Select[Any]:
    spans, within = _in_spans(dialect, work)
    columns = [work.c[name] for name in (*KEY, "kind", "stop", "holder", "fence")]
    return (
        select(*columns, plan.c.state)
        .select_from(work)
        .join(spans, within)
        .outerjoin(plan, plan.c.id == work.c.plan_id)
    )


def _check_spans(request: PlanRequest) -> None:
    """Refuse spans that overlap: a partition is in a plan once."""
    for one, other in zip(sorted(request.spans), sorted(request.spans)[1:], strict=False):
        if one[:3] == other[:3] and other.first <= one.last:
            raise InvalidInput.of("spans", (one, other), "spans that do not overlap")
