"""The gate through which claims go, one after the other: how far lanes have come, and what ran out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, literal_column, or_, select

from sealbook.ledger.db.bulk import update_rows
from sealbook.ledger.db.types import UtcTimestamp
from sealbook.ledger.schedule import budgets
from sealbook.ledger.schedule.tables import reservation
from sealbook.ledger.schedule.turns import LaneTurn
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.rows import OpenWork, read_row
from sealbook.ledger.work.tables import flow_pass, lane_pass, pause, work
from sealbook.model.retry import RetryPolicies
from sealbook.model.work import Lane, lapse

_STOPPED_MILLISECONDS = 10_000
"""How long a claimer on PostgreSQL may do nothing in its transaction before the server ends it."""

_REAPED_AT_ONCE = 5_000


class Signs(NamedTuple):
    """What else there may be to do: the first lease and reservation to run out, and whether any pause is."""

    lease_ends: datetime | None
    reservation_ends: datetime | None
    pauses: bool


def lock_lanes(
    connection: Connection, wanted: Collection[Lane], shares: Mapping[Lane, int]
) -> tuple[dict[Lane, LaneTurn], Signs]:
    """Wait for whoever else is claiming; return how far lanes have come, and what else there is to do."""
    postgresql = connection.dialect.name == "postgresql"
    rows = connection.execute(_LOCK_ON_POSTGRESQL if postgresql else _LANES).all()
    passes = {row[0]: row[1:4] for row in rows}
    lanes = {lane: LaneTurn(shares[lane], *passes[lane.value]) for lane in Lane if lane in wanted}
    return lanes, Signs(*rows[0][4:7])


_LANES = select(
    lane_pass,
    select(func.min(work.c.expires_at)).where(work.c.holder.is_not(None)).scalar_subquery(),
    select(func.min(reservation.c.expires_at)).scalar_subquery(),
    select(pause.c.id).exists(),
).order_by(lane_pass.c.lane)
# A claimer that is stopped in the middle must not keep the others waiting: the server ends its transaction.
_LOCK_ON_POSTGRESQL = _LANES.add_columns(
    func.set_config("idle_in_transaction_session_timeout", str(_STOPPED_MILLISECONDS), literal_column("true"))
).with_for_update(of=lane_pass)


def free_what_ran_out(connection: Connection, signs: Signs, retries: RetryPolicies, at: datetime) -> None:
    """Free the work of those whose leases have run out, and count as spent what they had reserved.

    What had failed before waits, as after another failure: it may be what ends its workers.
    """
    if signs.lease_ends is not None and signs.lease_ends < at:
        rows = map(read_row, connection.execute(_RUN_OUT, {"at": at}).all())
        work_rows.write(connection, [_lapsed(each, retries, at) for each in rows])
    if signs.reservation_ends is not None and signs.reservation_ends < at:
        budgets.settle_lapsed(connection, at)


_RUN_OUT = (
    select(work)
    .where(work.c.holder.is_not(None), work.c.expires_at < bindparam("at", type_=UtcTimestamp))
    .order_by(work.c.expires_at)
    .limit(_REAPED_AT_ONCE)
    .with_for_update(skip_locked=True)
)


def _lapsed(row: OpenWork, retries: RetryPolicies, at: datetime) -> OpenWork:
    policy = retries.of(row.key.source, row.key.query_name)
    after = replace(row.lapsed(), work=lapse(row.work, policy, at))
    return after if after.work.stop is None else after.stopped(at)


def paused_sources(connection: Connection, at: datetime) -> set[str]:
    """Return the sources that are paused as a whole."""
    return set(connection.execute(_PAUSED, {"at": at}).scalars())


_PAUSED = select(pause.c.source).where(
    pause.c.customer_id.is_(None),
    pause.c.query_name.is_(None),
    or_(pause.c.until.is_(None), pause.c.until > bindparam("at", type_=UtcTimestamp)),
)


def move_on(
    connection: Connection, lanes: Mapping[Lane, LaneTurn], passes: Mapping[tuple[Lane, str, str], int]
) -> None:
    """Write how far lanes and flows have come."""
    moved = [(lane.value, *flow, pass_) for (lane, *flow), pass_ in sorted(passes.items())]
    update_rows(connection, flow_pass, moved, ("pass",))
    turns = [
        (lane.value, turn.pass_, turn.began, turn.clock)
        for lane, turn in lanes.items()
        if any(moved[0] is lane for moved in passes)
    ]
    update_rows(connection, lane_pass, turns, ("pass", "began", "clock"))
