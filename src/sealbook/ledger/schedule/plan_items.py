"""Which partitions a plan would touch, and how each stands: asked at the preview, and again at the deed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache
from hashlib import sha256
from typing import Any

from sqlalchemy import Column, Connection, Date, FromClause, Select, and_, select

from sealbook.errors import InvalidInput
from sealbook.ledger.db.bulk import encode_rows, given_rows
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.db.types import Name
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import partition_state
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey, Status
from sealbook.model.plans import PlanItem, PlanKind, PlanRequest

_ABSENT = "absent"


def find_items(connection: Connection, request: PlanRequest) -> list[PlanItem]:
    """Return what a plan would touch, in key order."""
    if request.kind is PlanKind.BACKFILL:
        _check_spans(request)
        return list(_to_backfill(connection, request))
    if request.selection.is_everything:
        raise InvalidInput(
            f"a {request.kind} of everything is refused",
            field="selection",
            remedy="Choose partitions by key, source, customer, query, days or status.",
        )
    if request.kind in (PlanKind.MARK, PlanKind.CLEAR):
        return _of_work(connection, request)
    return _of_states(connection, request)


def pack(items: Sequence[PlanItem]) -> tuple[bytes, str]:
    """Return items as they are kept, and their digest."""
    text = "\n".join(map(str, items)).encode()
    return zlib.compress(text, 1), sha256(text).hexdigest()


def unpack(packed: bytes) -> list[PlanItem]:
    """Return items that were kept."""
    lines = zlib.decompress(packed).decode().splitlines()
    split = (line.split(" ", 1) for line in lines)
    return [PlanItem(PartitionKey.parse(key), standing) for key, standing in split]


def differences(before: Sequence[PlanItem], after: Sequence[PlanItem]) -> list[str]:
    """Say, partition by partition, what is another by now."""
    old, new = dict(before), dict(after)
    return [
        f"{key}: was {old.get(key, 'not in it')}, is {new.get(key, 'not in it')}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _of_states(connection: Connection, request: PlanRequest) -> list[PlanItem]:
    """Return judged partitions: the failed ones for a retry, all of them to be processed again."""
    state, dialect = partition_state, connection.dialect.name
    query = _standings(state).where(*conditions(dialect, state, request.selection))
    if request.kind is PlanKind.RETRY:
        query = query.where(state.c.status == Status.FAILED.value)
    return [
        PlanItem(PartitionKey(*key), _standing(status, attempts, fence))
        for *key, status, attempts, fence in map(tuple, connection.execute(query))
    ]


def _standings(state: FromClause) -> Select[Any]:
    """Select states, and the fence of the work that is open of them."""
    return (
        select(*(state.c[name] for name in (*KEY, "status", "attempt_count")), work.c.fence)
        .outerjoin(work, same(work, state))
        .order_by(*(state.c[name] for name in KEY))
    )


def _standing(status: str, attempts: int, fence: int | None) -> str:
    return f"{status} after {attempts}" + ("" if fence is None else f", open under {fence}")


def _of_work(connection: Connection, request: PlanRequest) -> list[PlanItem]:
    """Return open work: what has not stopped, to be given up; what has, to be taken up again."""
    query = select(*(work.c[name] for name in (*KEY, "tries", "stop", "fence"))).where(
        *conditions(connection.dialect.name, work, request.selection),
        work.c.stop.is_(None) if request.kind is PlanKind.MARK else work.c.stop.is_not(None),
    )
    rows = connection.execute(query.order_by(*(work.c[name] for name in KEY)))
    return [
        PlanItem(PartitionKey(*key), f"{stop or 'open'} after {tries} under {fence}")
        for *key, tries, stop, fence in map(tuple, rows)
    ]


def _to_backfill(connection: Connection, request: PlanRequest) -> Iterator[PlanItem]:
    """Yield the days of spans that are not good, or all with force, and that nothing is open of."""
    dialect = connection.dialect.name
    spans = encode_rows(span._asdict() for span in request.spans)
    states = {
        tuple(key): (status, attempts)
        for *key, status, attempts in map(tuple, connection.execute(_states_in(dialect), spans).all())
    }
    is_open = set(map(tuple, connection.execute(_open_in(dialect), spans).all()))
    for span in sorted(request.spans):
        for offset in range(span.days):
            key = (*span[:3], span.first + timedelta(days=offset))
            status, attempts = states.get(key, (_ABSENT, 0))
            if key not in is_open and (request.force or status != Status.SUCCESS.value):
                yield PlanItem(PartitionKey(*key), _standing(status, attempts, None))


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
    return select(*(work.c[name] for name in KEY)).join(spans, within)


def _check_spans(request: PlanRequest) -> None:
    """Refuse spans that overlap: a partition is in a plan once."""
    for one, other in zip(sorted(request.spans), sorted(request.spans)[1:], strict=False):
        if one[:3] == other[:3] and other.first <= one.last:
            raise InvalidInput.of("spans", (one, other), "spans that do not overlap")
