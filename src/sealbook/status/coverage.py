"""What a read gets of every partition it could ask for, and why it gets no more (R-CON-3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sealbook.config import SourceSettings
from sealbook.ledger.reader import LedgerReader
from sealbook.model.contract import Query
from sealbook.model.publication import Coverage
from sealbook.model.selection import Extent, Selection
from sealbook.status.failures import with_failures


def coverage_of(
    ledger: LedgerReader,
    settings: SourceSettings,
    query: Query,
    selection: Selection,
    *,
    strict: bool = False,
    cut: str | None = None,
) -> Iterator[Coverage]:
    """Cover the customers of the configuration, and others that the ledger knows, on every day of a span.

    The span runs, where it is not given, from the first to the last day that the ledger knows of the query.
    Partitions stream, in key order.
    """
    customers: Collection[str] | None = selection.customers
    since, until = selection.since, selection.until
    if customers is None or since is None or until is None:
        extent = _extent(ledger, selection, cut)
        customers = {*settings.customers, *extent.customers} if customers is None else customers
        since, until = since or extent.first, until or extent.last
    if since is None or until is None:
        return iter(())
    found = ledger.pointers.coverage(
        query.name,
        source=query.source,
        customers=customers,
        since=since,
        until=until,
        strict=strict,
        cut=cut,
    )
    if cut is not None:
        return found
    chosen = Selection(source=query.source, customers=customers, queries=query.name, since=since, until=until)
    failures = with_failures(found, ledger.partition_log.last_failures(chosen))
    return (each if failure is None else each.after(failure) for each, failure in failures)


def _extent(ledger: LedgerReader, selection: Selection, cut: str | None) -> Extent:
    if cut is None:
        failed = (key for key, _ in ledger.partition_log.last_failures(selection))
        spans = ((key.customer_id, key.logical_date, key.logical_date) for key in failed)
        return ledger.extent(selection) | Extent.of(spans)
    published = ledger.pointers.published(selection, cut=cut)
    return Extent.of((each.customer_id, each.logical_date, each.logical_date) for each in published)
