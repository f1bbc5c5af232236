"""A round: work is opened for what is due and has none (R-CTL-2, R-PST-8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, select

from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.pointers.plan import PlanReader
from sealbook.ledger.status.reader import StatusReader
from sealbook.ledger.status.tables import day_number, day_of
from sealbook.ledger.work.adding import NewWork, add
from sealbook.ledger.work.rows import DEFAULT_COST
from sealbook.ledger.work.tables import work
from sealbook.model.artifacts import Action
from sealbook.model.expectations import Expectations
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName
from sealbook.model.work import Lane, WorkKind

FRESH_FOR = timedelta(days=3)
"""How long after it is due a day that lacks is fresh; from then on it is history, to be backfilled."""

Costs = Mapping[AssetName, int]
"""What a partition of a query costs in requests, where that is not one."""

_NO_COSTS: Costs = MappingProxyType({})
_EVERYTHING = Selection()


class RoundPlanner:
    """The port of whoever opens work. What is not caught up with the log is seen in the next round."""

    def __init__(
        self, database: Database, clock: LedgerClock, statuses: StatusReader, pointers: PlanReader
    ) -> None:
        self._database = database
        self._clock = clock
        self._statuses = statuses
        self._pointers = pointers

    def due(
        self,
        expectations: Expectations,
        selection: Selection = _EVERYTHING,
        *,
        fresh_for: timedelta = FRESH_FOR,
        costs: Costs = _NO_COSTS,
        catch_up: Callable[[], object] = lambda: None,
    ) -> list[NewWork]:
        """Return the work that is due and not open, without opening it.

        `catch_up` takes the log into the status. That comes after the look at what is open: what is done in
        between is then not taken for missing.
        """
        with self._database.read() as connection:
            taken = _open_keys(connection)
        catch_up()
        # What is accepted is loaded, though its day may be due once more: that is seen when it is there.
        found = [each for each in self._loads(selection) if each[:4] not in taken]
        taken.update(each[:4] for each in found)
        fetches = self._fetches(expectations, selection, fresh_for, costs)
        found += (each for each in fetches if each[:4] not in taken) if taken else fetches
        return found

    def open_due(
        self,
        expectations: Expectations,
        selection: Selection = _EVERYTHING,
        *,
        fresh_for: timedelta = FRESH_FOR,
        costs: Costs = _NO_COSTS,
        catch_up: Callable[[], object] = lambda: None,
    ) -> Counter[Lane]:
        """Open work for what is due and has none; return how much was found, by lane."""
        found = self.due(expectations, selection, fresh_for=fresh_for, costs=costs, catch_up=catch_up)
        if found:
            self._database.write(
                lambda connection: add(connection, found, self._clock.now(connection)), repeatable=True
            )
        return Counter(each.lane for each in found)

    def _fetches(
        self, expectations: Expectations, selection: Selection, fresh_for: timedelta, costs: Costs
    ) -> Iterator[NewWork]:
        for name, missing, again in self._statuses.wanting(expectations, selection):
            source, customer_id, query_name = name
            asset = AssetName(source, query_name)
            cost = costs.get(asset, DEFAULT_COST)
            fresh_from = _fresh_from(expectations, asset, customer_id, expectations.now - fresh_for)
            for day in missing:
                lane = Lane.FRESH if day >= fresh_from else Lane.BACKFILL
                yield NewWork(*name, day_of(day), lane, WorkKind.FETCH, cost)
            for day in again:
                yield NewWork(*name, day_of(day), Lane.REFRESH, WorkKind.FETCH, cost)

    def _loads(self, selection: Selection) -> Iterator[NewWork]:
        """Yield what is accepted and not published yet, by whomever."""
        for item in self._pointers.plan(selection):
            if item.action is not Action.HIDE:
                lane = Lane.FRESH if item.action is Action.LOAD else Lane.REFRESH
                key = (item.source, item.customer_id, item.query_name, item.logical_date)
                yield NewWork(*key, lane, WorkKind.LOAD, DEFAULT_COST, item.run_id)


def _fresh_from(expectations: Expectations, asset: AssetName, customer_id: str, since: datetime) -> int:
    """Return the first day of a customer's query that was due after a moment, as a number."""
    universe = expectations.universe
    account = universe.accounts.get(asset.source, {}).get(customer_id)
    due = None if account is None else universe.due_days(asset, account, since)
    return -(2**31) if due is None else day_number(due[1]) + 1


def _open_keys(connection: Connection) -> set[tuple[Any, ...]]:
    """Return the partitions that something is open of."""
    query = select(*(work.c[name] for name in KEY))
    return set(map(tuple, connection.execute(query).all()))
