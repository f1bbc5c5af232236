"""What a read gets of every partition that there should be or is, and why it gets no more (R-CON-3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from sealbook.ledger.pointers.published import unknown_cut
from sealbook.ledger.reader import LedgerReader
from sealbook.model.publication import Coverage, CoverageKind
from sealbook.model.selection import Extent, Selection
from sealbook.model.universe import AssetName, Days, Universe
from sealbook.status.failures import with_failures

_DAY = timedelta(days=1)


def coverage_of(
    ledger: LedgerReader,
    universe: Universe,
    asset: AssetName,
    selection: Selection,
    *,
    strict: bool = False,
    cut: str | None = None,
) -> Iterator[Coverage]:
    """Cover what is chosen of a query: partitions that are due, and others that the ledger knows.

    Days that are expected and not due yet are told where the span is said to reach them. At a cut, what was
    due when it was made counts. Partitions stream, in key order.
    """
    now = ledger.now() if cut is None else _made_at(ledger, cut)
    due = {
        account.customer_id: universe.due_days(asset, account, now) or (days[0], days[0] - _DAY)
        for account in universe.accounts.get(asset.source, {}).values()
        if (days := universe.days(asset, account)) is not None
    }
    customers, since, until = selection.customers, selection.since, selection.until
    if customers is None or since is None or until is None:
        extent = _extent(ledger, selection, cut) | Extent.of((one, *days) for one, days in due.items())
        customers = tuple(extent.customers) if customers is None else customers
        since, until = since or extent.first, until or extent.last
    if since is None or until is None or since > until:
        return iter(())
    found = ledger.pointers.coverage(
        asset.query_name,
        source=asset.source,
        customers=customers,
        since=since,
        until=until,
        strict=strict,
        cut=cut,
    )
    if cut is None:
        chosen = Selection(
            source=asset.source, customers=customers, queries=asset.query_name, since=since, until=until
        )
        failures = with_failures(found, ledger.partition_log.last_failures(chosen))
        found = (each if failure is None else each.after(failure) for each, failure in failures)
    return _expected(found, universe, due, not_due=selection.until is not None)


def _expected(
    found: Iterable[Coverage], universe: Universe, due: dict[str, Days], *, not_due: bool
) -> Iterator[Coverage]:
    """Leave out what nobody has attempted or expects, and tell what is `not_due` from what is missing."""
    for each in found:
        if each.kind is not CoverageKind.MISSING:
            yield each
        elif (days := due.get(each.customer_id)) is not None and each.logical_date >= days[0]:
            if each.logical_date <= days[1]:
                yield each
            elif not_due and (from_when := universe.due_at(each)) is not None:
                why = f"it is due from {from_when:%Y-%m-%d %H:%M} UTC on"
                yield each._replace(kind=CoverageKind.NOT_DUE, why=why)


def _made_at(ledger: LedgerReader, token: str) -> datetime:
    for cut in ledger.pointers.cuts():
        if cut.token == token:
            return cut.created_at
    raise unknown_cut(token)


def _extent(ledger: LedgerReader, selection: Selection, cut: str | None) -> Extent:
    if cut is None:
        failed = (key for key, _ in ledger.partition_log.last_failures(selection))
        spans = ((key.customer_id, key.logical_date, key.logical_date) for key in failed)
        return ledger.extent(selection) | Extent.of(spans)
    published = ledger.pointers.published(selection, cut=cut)
    return Extent.of((each.customer_id, each.logical_date, each.logical_date) for each in published)
