"""From a book to the scenario of its simulation: what there is, what is missing, and how much has failed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from sealbook.config import Settings
from sealbook.control.pricing import days_per_request
from sealbook.control.scenario import Materialized, Missing, Opened, Rates, Scenario, Series
from sealbook.ledger import LedgerReader
from sealbook.model.expectations import Expectations
from sealbook.model.failures import AttemptCounts, ErrorClass
from sealbook.model.freshness import Freshness
from sealbook.model.outlook import Outlook
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName
from sealbook.model.work import WorkKind
from sealbook.status.listing import iter_lines
from sealbook.status.outlooks import Outlooks

_AT_ONCE = 8
_SECONDS = 2


def scenario_of(
    settings: Settings,
    ledger: LedgerReader,
    expectations: Expectations,
    selection: Selection,
    days: int,
    *,
    rates: Rates | None = None,
    at_once: int = _AT_ONCE,
    seconds: int = _SECONDS,
    seed: int = 0,
) -> Scenario:
    """Return what is chosen of a book as a scenario of some days, under its configured policy.

    What is open goes on from where it is: with its failures so far, from the time at which it is ready.
    Attempts fail as often as those in its log did, query by query, unless `rates` are given.
    """
    universe, now = expectations.universe, expectations.now
    series = [
        Series(
            source,
            customer_id,
            query_name,
            first.toordinal(),
            last.toordinal(),
            universe.accounts[source][customer_id].zone,
        )
        for source, customer_id, query_name, first, last in universe.due(
            selection, now + timedelta(days=days)
        )
    ]
    standing = _standing(ledger, expectations, selection, series)
    assets = {AssetName(each.source, each.query_name) for each in series}
    control = settings.control
    return Scenario(
        now,
        tuple(series),
        due={name: _points(universe.assets[name].freshness) for name in assets},
        missing=standing.missing,
        good=standing.good,
        opened=standing.opened,
        rates=dict.fromkeys(assets, rates)
        if rates is not None
        else rates_of(ledger.partition_log.attempts()),
        retries=control.retries,
        shares=control.shares,
        weights=control.weights,
        requests_per_day=control.requests_per_day,
        ranges=days_per_request(settings),
        fresh_for=control.fresh_for,
        at_once=at_once,
        seconds=seconds,
        seed=seed,
    )


def rates_of(attempts: Mapping[AssetName, AttemptCounts]) -> dict[AssetName, Rates]:
    """Return which part of the attempts of each query failed, by cause."""
    return {
        name: Rates(
            transient=each.failed[ErrorClass.TRANSIENT] / each.total,
            permanent=each.failed[ErrorClass.PERMANENT] / each.total,
            rejected=each.rejected / each.total,
        )
        for name, each in attempts.items()
        if each.total
    }


def _points(freshness: Freshness | None) -> tuple[timedelta, ...]:
    return () if freshness is None else freshness.due


class _Standing(NamedTuple):
    """The days that are due: those that cannot be read, those that can and will be due again, open ones."""

    missing: tuple[Missing, ...]
    good: tuple[Materialized, ...]
    opened: tuple[Opened, ...]


def _standing(
    ledger: LedgerReader, expectations: Expectations, selection: Selection, series: list[Series]
) -> _Standing:
    index = {(each.source, each.customer_id, each.query_name): number for number, each in enumerate(series)}
    outlooks = Outlooks(ledger.schedule, expectations.now).chosen(selection)
    missing, good, opened = [], [], []
    for line in iter_lines(ledger.statuses, expectations, selection):
        key = line.key
        number = index.get((key.source, key.customer_id, key.query_name))
        if number is None or not line.due:
            continue
        day = key.logical_date.toordinal()
        outlook = outlooks.get(key)
        is_good = line.availability.readable and line.last_materialization_at is not None
        if outlook is not None and outlook.kind is WorkKind.LOAD and outlook.stop is None:
            good.append(Materialized(number, day, expectations.now))  # which asks nothing of the source
        elif outlook is not None:
            opened.append(_opened(number, day, outlook, is_good=is_good))
        elif not is_good:
            missing.append(Missing(number, day, day))
        elif not line.settled and line.last_materialization_at is not None:
            good.append(Materialized(number, day, line.last_materialization_at))
    return _Standing(tuple(missing), tuple(good), tuple(opened))


def _opened(series: int, day: int, outlook: Outlook, *, is_good: bool) -> Opened:
    return Opened(series, day, outlook.lane, outlook.next_run_at, outlook.tries, outlook.stop, is_good)
