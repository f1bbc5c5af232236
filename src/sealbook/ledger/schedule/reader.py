"""What may be asked of the schedule: what is open and why it waits, who holds what, what is left to spend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import ColumnElement, case, func, or_, select

from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import stream
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.schedule import budgets
from sealbook.ledger.schedule.budgets import Scope
from sealbook.ledger.schedule.pauses import Pause, read_pauses
from sealbook.ledger.schedule.plan_items import unpack
from sealbook.ledger.schedule.plan_rows import COLUMNS, plan_of, unknown_plan
from sealbook.ledger.schedule.tables import plan
from sealbook.ledger.states.selecting import conditions
from sealbook.ledger.work.rows import OpenWork, read_row
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionKey
from sealbook.model.claims import Lease
from sealbook.model.plans import Plan, PlanItem, Progress
from sealbook.model.ranges import DAY_BY_DAY, DaysPerRequest, count_ranges
from sealbook.model.selection import Selection
from sealbook.model.work import Lane, WorkKind

_EVERYTHING = Selection()
_KEY_COLUMNS = [work.c[name] for name in KEY]


class LaneCounts(NamedTuple):
    """How much of a lane is ready, waits for its time, is being worked on, is paused, and has stopped."""

    ready: int = 0
    waiting: int = 0
    held: int = 0
    paused: int = 0
    stopped: int = 0


class ScheduleReader:
    """The port of whoever looks at the schedule. Reading never writes."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def work(self, key: PartitionKey) -> OpenWork | None:
        """Return what is to be done about a partition, if anything is."""
        return next(self.open_work(Selection(keys=[key])), None)

    def open_work(self, selection: Selection = _EVERYTHING, *, stopped: bool = False) -> Iterator[OpenWork]:
        """Stream what is open and chosen, in key order; only what has stopped, if asked for that."""
        query = select(work).where(*conditions(self._database.dialect, work, selection))
        if stopped:
            query = query.where(work.c.stop.is_not(None))
        return stream(self._database, query.order_by(*_KEY_COLUMNS), lambda *row: read_row(row))

    def work_of_plan(self, plan_id: int) -> Iterator[OpenWork]:
        """Stream what is open of a plan, in key order."""
        query = select(work).where(work.c.plan_id == plan_id).order_by(*_KEY_COLUMNS)
        return stream(self._database, query, lambda *row: read_row(row))

    def leases(self) -> Iterator[OpenWork]:
        """Stream what is being worked on, holder by holder."""
        query = select(work).where(work.c.holder.is_not(None)).order_by(work.c.holder, *_KEY_COLUMNS)
        return stream(self._database, query, lambda *row: read_row(row))

    def held(self, selection: Selection = _EVERYTHING) -> list[Lease]:
        """Return the leases that have not run out on partitions that are chosen, in key order."""
        with self._database.read() as connection:
            live = work.c.expires_at > self._clock.now(connection)
            query = select(*_KEY_COLUMNS, work.c.holder, work.c.claimed_at, work.c.expires_at).where(
                work.c.holder.is_not(None), live, *conditions(self._database.dialect, work, selection)
            )
            rows = connection.execute(query.order_by(*_KEY_COLUMNS))
            return [
                Lease(PartitionKey(*key), holder, since, until)
                for *key, holder, since, until in map(tuple, rows)
            ]

    def lanes(self, selection: Selection = _EVERYTHING) -> dict[Lane, LaneCounts]:
        """Count what is open and chosen, by lane."""
        with self._database.read() as connection:
            standing = case(
                (work.c.holder.is_not(None), "held"),
                (work.c.stop.is_not(None), "stopped"),
                (work.c.paused, "paused"),
                (work.c.ready_at <= self._clock.now(connection), "ready"),
                else_="waiting",
            )
            query = (
                select(work.c.lane, standing.label("standing"), func.count())
                .where(*conditions(self._database.dialect, work, selection))
                .group_by(work.c.lane, "standing")
            )
            counts: dict[Lane, dict[str, int]] = {lane: {} for lane in Lane}
            for lane, word, number in connection.execute(query):
                counts[Lane(lane)][word] = number
        return {lane: LaneCounts(**found) for lane, found in counts.items()}

    def reopenable(self) -> Iterator[OpenWork]:
        """Stream what has stopped or was rejected, and is nobody's: other settings may open it again."""
        waits = or_(work.c.stop.is_not(None), work.c.contract_hash.is_not(None))
        query = select(work).where(waits, work.c.holder.is_(None)).order_by(*_KEY_COLUMNS)
        return stream(self._database, query, lambda *row: read_row(row))

    def wanted(self, ranges: DaysPerRequest = DAY_BY_DAY) -> dict[Scope, int]:
        """Return the requests that open work will make, by source and lane."""
        asks = (work.c.kind == WorkKind.FETCH.value, work.c.stop.is_(None), work.c.holder.is_(None))
        by_day = work.c.source.not_in(ranges.sources)
        query = select(work.c.source, work.c.lane, func.sum(work.c.cost)).where(*asks, by_day)
        with self._database.read() as connection:
            rows = connection.execute(query.group_by(work.c.source, work.c.lane))
            found = {(source, Lane(lane)): int(requests) for source, lane, requests in rows}
        if ranges.sources:
            found |= self._wanted_ranges(ranges, *asks)
        return found

    def _wanted_ranges(self, ranges: DaysPerRequest, *asks: ColumnElement[bool]) -> dict[Scope, int]:
        """Count the requests of sources that take several days in one."""
        alike = [work.c[name] for name in ("source", "lane", "customer_id", "query_name", "tries", "cost")]
        query = select(*alike, work.c.logical_date).where(*asks, work.c.source.in_(ranges.sources))
        rows = stream(self._database, query.order_by(*alike), lambda *row: (row[:-1], row[-1].toordinal()))
        found: dict[Scope, int] = defaultdict(int)
        for (source, lane, _, query_name, tries, cost), own in groupby(rows, key=itemgetter(0)):
            days = (day for _, day in own)
            found[source, Lane(lane)] += cost * count_ranges(days, ranges.of(source, query_name), tries=tries)
        return found

    def spent(self) -> Mapping[Scope, int]:
        """Return the requests that count against budgets, by source and lane."""
        with self._database.read() as connection:
            return budgets.used(connection, self._clock.now(connection))

    def next_room_at(self, source: str) -> datetime | None:
        """Return when the oldest of what was spent at a source stops counting, if anything does."""
        with self._database.read() as connection:
            return budgets.next_room(connection, [source], self._clock.now(connection))

    def pauses(self) -> list[Pause]:
        """Return the pauses that hold."""
        with self._database.read() as connection:
            return read_pauses(connection, self._clock.now(connection))

    def plans(self) -> list[Plan]:
        """Return all plans, the newest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(*COLUMNS).order_by(plan.c.id.desc()))
            return [plan_of(row) for row in rows]

    def plan_selection(self, plan_id: int) -> Selection:
        """Return which partitions a plan was asked for; NotFound if there is no such plan."""
        with self._database.read() as connection:
            row = connection.execute(select(plan.c.request).where(plan.c.id == plan_id)).one_or_none()
        if row is None:
            raise unknown_plan(plan_id)
        return Selection.from_dict(row.request["selection"])

    def plan_items(self, plan_id: int) -> list[PlanItem]:
        """Return the partitions of a plan, as they stood when it was previewed."""
        with self._database.read() as connection:
            packed = connection.execute(select(plan.c.packed).where(plan.c.id == plan_id)).scalar()
        return [] if packed is None else unpack(packed)

    def progress(self, plan_id: int) -> Progress:
        """Count what is open of a plan."""
        return self.progresses(plan_id).get(plan_id, Progress(0, 0, 0))

    def progresses(self, plan_id: int | None = None) -> dict[int, Progress]:
        """Count what is open of each plan that has anything open, or of one."""
        counts = (func.count(), func.count(work.c.holder), func.count(work.c.stop))
        of_plan = work.c.plan_id.is_not(None) if plan_id is None else work.c.plan_id == plan_id
        query = select(work.c.plan_id, *counts).where(of_plan).group_by(work.c.plan_id)
        with self._database.read() as connection:
            return {number: Progress(*found) for number, *found in connection.execute(query)}
