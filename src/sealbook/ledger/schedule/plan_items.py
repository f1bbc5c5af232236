"""Which partitions a plan would touch, and how each stands: asked at the preview, and again at the deed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256

from sqlalchemy import Connection, select

from sealbook.errors import InvalidInput
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.schedule.backfill_days import find_days, standing
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.states.tables import partition_state
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey, Status
from sealbook.model.plans import FENCE, LeftOut, PlanItem, PlanKind, PlanRequest
from sealbook.model.words import counted


def find_items(connection: Connection, request: PlanRequest) -> tuple[list[PlanItem], Mapping[LeftOut, int]]:
    """Return what a plan would touch, in key order, and what of a backfill's days is left out."""
    if request.kind is PlanKind.BACKFILL:
        return find_days(connection, request)
    if request.selection.is_everything:
        raise InvalidInput(
            f"a {request.kind} of everything is refused",
            field="selection",
            remedy="Choose partitions by key, source, customer, query or days.",
        )
    found = []
    if request.kind in (PlanKind.MARK, PlanKind.CLEAR):
        found += _of_work(connection, request)
    if request.kind is not PlanKind.CLEAR:
        found += _of_states(connection, request)
    without = {*request.without}
    return sorted(item for item in found if item.key not in without), {}


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
        f"{key}: was {old.get(key, 'no part of it')}; is {new.get(key, 'no part of it')}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _of_states(connection: Connection, request: PlanRequest) -> list[PlanItem]:
    """Return judged partitions: all, to be processed again; or the failed ones, to be tried again.

    Of those to be given up, work that is open is found by itself.
    """
    state = partition_state
    query = (
        select(*(state.c[name] for name in (*KEY, "status", "attempt_count")), work.c.fence)
        .outerjoin(work, same(work, state))
        .where(*conditions(connection.dialect.name, state, request.selection))
    )
    if request.kind is not PlanKind.REPROCESS:
        query = query.where(state.c.status == Status.FAILED.value)
    if request.kind is PlanKind.MARK:
        query = query.where(work.c.lane.is_(None))
    return [
        PlanItem(PartitionKey(*key), standing(status, attempts, fence))
        for *key, status, attempts, fence in map(tuple, connection.execute(query))
    ]


def _of_work(connection: Connection, request: PlanRequest) -> list[PlanItem]:
    """Return open work: what has not stopped, to be given up; what has, to be taken up again."""
    query = select(*(work.c[name] for name in (*KEY, "tries", "stop", "fence"))).where(
        *conditions(connection.dialect.name, work, request.selection),
        work.c.stop.is_(None) if request.kind is PlanKind.MARK else work.c.stop.is_not(None),
    )
    return [
        PlanItem(PartitionKey(*key), f"{stop or 'open'} after {counted(tries, 'failure')}{FENCE}{fence}")
        for *key, tries, stop, fence in map(tuple, connection.execute(query))
    ]
