"""The scheduler's port: claims of open work, their leases, and their end (R-CTL-4, R-CTL-6, R-CTL-10).

A claim is one short transaction, and whoever claims waits for its turn: a lock on the lanes' passes keeps
claims in one order, so that shares and budgets hold however many claim at once. Work itself is done without
any transaction. Rows that others are just writing are passed over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    Boolean,
    Connection,
    Row,
    bindparam,
    func,
    literal_column,
    select,
    tuple_,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from sealbook.errors import InvalidInput
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.db.types import UtcTimestamp
from sealbook.ledger.schedule import budgets
from sealbook.ledger.schedule.budgets import Scope
from sealbook.ledger.schedule.finding import Asked, claim_rows, find_ready
from sealbook.ledger.schedule.gate import free_what_ran_out, lock_lanes, move_on, paused_sources
from sealbook.ledger.schedule.neighbours import Neighbours, find_neighbours, price
from sealbook.ledger.schedule.turns import Flow, LaneTurn, room, take_turns
from sealbook.ledger.work import rows as work_rows
from sealbook.ledger.work.fences import encode_fences, held_rows, lock_held
from sealbook.ledger.work.rows import OpenWork
from sealbook.ledger.work.tables import FREE, pause, work
from sealbook.model import PartitionKey
from sealbook.model.claims import Claim, Claims, Fences, Waiting
from sealbook.model.ranges import DAY_BY_DAY, DaysPerRequest
from sealbook.model.retry import RetryPolicies
from sealbook.model.shares import DEFAULT_SHARES
from sealbook.model.verdict import check_text
from sealbook.model.work import Lane, Undone, WorkKind, put_off

LEASE = timedelta(minutes=5)
"""How long a claim holds unless it is renewed."""


@dataclass(frozen=True)
class Terms:
    """By what open work is shared out: lanes by `shares`, customers by `weights`, sources by `budgets`.

    Only what the sources and lanes named here have is claimed. A weight that is not given is 1; a budget is
    in requests a day, and none is no bound. What lanes are `expected` to ask for within a day is kept for
    them, up to their shares; all of these, where nothing is said. Days that go into one request by `ranges`
    are claimed together, and cost what one does.
    """

    sources: Collection[str]
    lanes: Collection[Lane] = tuple(Lane)
    shares: Mapping[Lane, int] = field(default_factory=lambda: DEFAULT_SHARES)
    weights: Mapping[Flow, int] = field(default_factory=dict)
    budgets: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[Scope, int] = field(default_factory=dict)
    ranges: DaysPerRequest = DAY_BY_DAY

    def __post_init__(self) -> None:
        for name, values in (("share", self.shares), ("weight", self.weights)):
            for each, value in values.items():
                if value < 1:
                    raise InvalidInput.of(f"{name} of {each}", value, "a whole number from 1")

    @property
    def heavy(self) -> dict[Flow, int]:
        """The weights that are more than one."""
        return {flow: weight for flow, weight in self.weights.items() if weight > 1}


class Scheduler:
    """The port of whoever works on what is open."""

    def __init__(self, database: Database, clock: LedgerClock, retries: RetryPolicies | None = None) -> None:
        self._database = database
        self._clock = clock
        self._retries = retries or RetryPolicies()

    def claim(self, holder: str, terms: Terms, *, limit: int, lease: timedelta = LEASE) -> Claims:
        """Claim up to so many partitions whose turn it is; if there are none, say why."""
        check_text("holder", holder)
        if limit < 1:
            raise InvalidInput.of("limit", limit, "a whole number from 1")
        return self._database.write(lambda connection: self._claim(connection, holder, terms, limit, lease))

    def heartbeat(self, holder: str, fences: Fences, lease: timedelta = LEASE) -> set[PartitionKey]:
        """Renew a holder's leases and reservations; return what is still held under these fences.

        A lease that has run out is lost, also if nobody has taken over: what was reserved under it may count
        as spent by then.
        """

        def renew(connection: Connection) -> set[PartitionKey]:
            at = self._clock.now(connection)
            until = at + lease
            budgets.renew(connection, holder, at, until)
            values = {**encode_fences(fences.items()), "at": at, "until": until}
            rows = connection.execute(_renewing(connection.dialect.name), values)
            return {PartitionKey(*row) for row in rows}

        return self._database.write(renew, repeatable=True)

    def release(self, fences: Fences) -> set[PartitionKey]:
        """Let go of what is still held under these fences, and return which that was: others can have it."""
        if not fences:
            return set()

        return self._database.write(lambda connection: _release(connection, fences), repeatable=True)

    def put_off(self, undone: Mapping[PartitionKey, Undone], fences: Fences) -> set[PartitionKey]:
        """Have what is still held and was not done wait as after a failure; return which that was.

        What was sealed or accepted meanwhile, and only got no further, stays what it is.
        """
        if not undone:
            return set()

        def wait(connection: Connection) -> set[PartitionKey]:
            held = lock_held(connection, {key: fences[key] for key in undone if key in fences})
            rows = work_rows.lock(connection, held) if held else {}
            at = self._clock.now(connection)
            work_rows.write(connection, [self._put_off(row, undone[key], at) for key, row in rows.items()])
            return set(rows)

        return self._database.write(wait)

    def _put_off(self, row: OpenWork, undone: Undone, at: datetime) -> OpenWork:
        policy = self._retries.of(row.key.source, row.key.query_name)
        after = replace(row.let_go(), work=put_off(row.work, undone, policy, at))
        return after if after.work.stop is None else after.stopped(at)

    def settle(self, requests: Mapping[int, int]) -> None:
        """Say how many requests were made, by reservation; what is never settled counts as spent."""

        def work(connection: Connection) -> None:
            budgets.settle(connection, requests, self._clock.now(connection))

        self._database.write(work, repeatable=True)

    def _claim(
        self, connection: Connection, holder: str, terms: Terms, limit: int, lease: timedelta
    ) -> Claims:
        lanes, signs = lock_lanes(connection, terms.lanes, terms.shares)
        at = self._clock.now(connection)
        until = at + lease
        free_what_ran_out(connection, signs, self._retries, at)
        left = budgets.read_budgets(connection, terms.budgets, terms.shares, terms.expected, at)
        paused = paused_sources(connection, at) if signs.pauses else set()
        asked = [
            Asked(lane, source, room(left[source], lane) if source in left else None)
            for lane in lanes
            for source in terms.sources
            if source not in paused
        ]
        found = find_ready(connection, asked, limit, at, weights=terms.heavy, pauses=signs.pauses)
        for lane, flows in found.items():
            lanes[lane].flows = flows
        neighbours = _neighbours(connection, lanes.values(), terms.ranges, at)
        turns = take_turns(lanes, limit, terms.weights, left, neighbours)
        if not turns.places:
            return _why_none(connection, holder, terms, at, until)
        rows = claim_rows(connection, turns.places, holder, at, until)
        if not rows:
            return Claims(holder, until, waiting=Waiting.CONTENDED, next_at=at)
        claims = tuple(map(_claimed, rows))
        if neighbours is not None:
            kept, back = price(claims, neighbours.together)
            claims = tuple(kept)
            if back:
                _release(connection, {claim.key: claim.fence for claim in back})
        move_on(connection, lanes, turns.passes)
        return Claims(
            holder,
            until,
            claims,
            budgets.reserve(connection, _requests(claims), holder, until),
        )


_KEY_COLUMNS = [work.c[name] for name in KEY]
_key = tuple_(*_KEY_COLUMNS)
_LANE = {lane.value: lane for lane in Lane}
_KIND = {kind.value: kind for kind in WorkKind}


def _claimed(row: Row[Any]) -> Claim:
    *key, lane, kind, fence, run_id, cost, tries, plan_id, left = tuple(row)
    requests = cost if kind == WorkKind.FETCH else 0
    return Claim(PartitionKey(*key), _LANE[lane], _KIND[kind], fence, run_id, requests, tries, plan_id, left)


def _release(connection: Connection, fences: Fences) -> set[PartitionKey]:
    rows = connection.execute(_releasing(connection.dialect.name), encode_fences(fences.items()))
    return {PartitionKey(*row) for row in rows}


def _neighbours(
    connection: Connection, lanes: Iterable[LaneTurn], ranges: DaysPerRequest, at: datetime
) -> Neighbours | None:
    """Return what is ready around the days that were found; None if all of it is asked for day by day."""
    if not ranges.sources:
        return None
    places = [
        row.place
        for lane in lanes
        for (source, _), (_, ready) in lane.flows.items()
        if source in ranges.sources
        for row in ready
        if row.requests
    ]
    return find_neighbours(connection, places, ranges, at) if places else None


def _requests(claims: Iterable[Claim]) -> dict[Scope, int]:
    """Add up what was claimed costs, by source and lane."""
    requests: dict[Scope, int] = defaultdict(int)
    for claim in claims:
        requests[claim.key.source, claim.lane] += claim.requests
    return requests


def _why_none(connection: Connection, holder: str, terms: Terms, at: datetime, until: datetime) -> Claims:
    """Say why nothing could be claimed: something is ready, and gated; or nothing is, until a time."""
    mine = [work.c.lane.in_([lane.value for lane in terms.lanes]), work.c.source.in_(list(terms.sources))]
    free = [*mine, literal_column(FREE, Boolean)]
    gated, later, lapses = connection.execute(
        select(
            select(work.c.lane).where(*free, work.c.ready_at <= at).exists(),
            select(func.min(work.c.ready_at)).where(*free, work.c.ready_at > at).scalar_subquery(),
            select(func.min(work.c.expires_at)).where(*mine).scalar_subquery(),
        )
    ).one()
    times = [later, lapses]
    if gated:
        times += [
            connection.execute(_PAUSE_ENDS, {"at": at}).scalar(),
            budgets.next_room(connection, terms.budgets, at),
        ]
    return Claims(
        holder,
        until,
        waiting=Waiting.GATED if gated else Waiting.IDLE,
        next_at=min((time for time in times if time is not None), default=None),
    )


_PAUSE_ENDS = select(func.min(pause.c.until)).where(pause.c.until > bindparam("at", type_=UtcTimestamp))


@cache
def _renewing(dialect: str) -> ReturningUpdate[Any]:
    held = held_rows(dialect).cte("held")
    renewed = update(work).where(
        _key.in_(select(held)), work.c.expires_at >= bindparam("at", type_=UtcTimestamp)
    )
    return renewed.values(expires_at=bindparam("until", type_=UtcTimestamp)).returning(*_KEY_COLUMNS)


@cache
def _releasing(dialect: str) -> ReturningUpdate[Any]:
    held = held_rows(dialect).cte("held")
    released = update(work).where(_key.in_(select(held)))
    free = dict.fromkeys(("holder", "claimed_at", "expires_at", "claim_run_id"))
    return released.values(free).returning(*_KEY_COLUMNS)
