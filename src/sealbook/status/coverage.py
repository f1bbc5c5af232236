"""What a read gets of every partition it could ask for, and why it gets no more (R-CON-3)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from sealbook.config import SourceSettings
from sealbook.ledger import Ledger
from sealbook.model.contract import Query
from sealbook.model.publication import Coverage


def coverage_of(
    ledger: Ledger,
    settings: SourceSettings,
    query: Query,
    *,
    customers: Collection[str] | None = None,
    since: date | None = None,
    until: date | None = None,
    strict: bool = False,
    cut: str | None = None,
) -> list[Coverage]:
    """Cover the customers of the configuration, and others that the ledger knows, on every day of a span.

    The span runs, where it is not given, from the first to the last day that the ledger knows of the query.
    """
    if customers is None or since is None or until is None:
        known_customers, days = _known(ledger, query, customers, since, until, cut)
        customers = {*settings.customers, *known_customers} if customers is None else customers
        since = min(days, default=None) if since is None else since
        until = max(days, default=None) if until is None else until
    if since is None or until is None:
        return []
    return list(
        ledger.pointers.coverage(
            query.name,
            source=query.source,
            customers=customers,
            since=since,
            until=until,
            strict=strict,
            cut=cut,
        )
    )


def _known(
    ledger: Ledger,
    query: Query,
    customers: Collection[str] | None,
    since: date | None,
    until: date | None,
    cut: str | None,
) -> tuple[set[str], set[date]]:
    """Return the customers and the days of partitions that are asked for and that the ledger knows."""
    found = (
        (
            (each.key.customer_id, each.key.logical_date)
            for each in ledger.states(source=query.source, query_name=query.name, since=since, until=until)
        )
        if cut is None
        else (
            (each.customer_id, each.logical_date)
            for each in ledger.pointers.published(
                query.name, source=query.source, since=since, until=until, cut=cut
            )
        )
    )
    known: set[str] = set()
    days: set[date] = set()
    for customer, day in found:
        if customers is None or customer in customers:
            known.add(customer)
            days.add(day)
    return known, days
