"""What a read gets of every partition it could ask for, and why it gets no more (R-CON-3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date

from sealbook.config import SourceSettings
from sealbook.ledger.reader import LedgerReader
from sealbook.model.contract import Query
from sealbook.model.publication import Coverage
from sealbook.model.selection import Keyed, Selection


def coverage_of(
    ledger: LedgerReader,
    settings: SourceSettings,
    query: Query,
    selection: Selection,
    *,
    strict: bool = False,
    cut: str | None = None,
) -> list[Coverage]:
    """Cover the customers of the configuration, and others that the ledger knows, on every day of a span.

    The span runs, where it is not given, from the first to the last day that the ledger knows of the query.
    """
    customers: Collection[str] | None = selection.customers
    since, until = selection.since, selection.until
    if customers is None or since is None or until is None:
        known_customers, days = _known(ledger, selection, cut)
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


def _known(ledger: LedgerReader, selection: Selection, cut: str | None) -> tuple[set[str], set[date]]:
    """Return the customers and the days of partitions that are asked for and that the ledger knows."""
    found: Iterable[Keyed] = (
        ledger.states(selection) if cut is None else ledger.pointers.published(selection, cut=cut)
    )
    customers: set[str] = set()
    days: set[date] = set()
    for each in found:
        customers.add(each.customer_id)
        days.add(each.logical_date)
    return customers, days
