"""What reads get of every partition that is chosen, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from sealbook.config import Settings, SourceSettings
from sealbook.ledger.reader import LedgerReader
from sealbook.model.publication import Coverage, CoverageKind
from sealbook.model.selection import Selection
from sealbook.status import coverage
from sealbook.views.contracts import chosen_queries


@dataclass(frozen=True, slots=True)
class CoverageListing:
    """Partitions of the kinds that are wanted, and counts of all kinds."""

    partitions: list[Coverage]
    counts: Counter[CoverageKind]


def list_coverage(
    settings: Settings,
    ledger: LedgerReader,
    selection: Selection,
    *,
    kinds: Collection[CoverageKind] = (),
    strict: bool = False,
    cut: str | None = None,
) -> CoverageListing:
    """Cover every query that is chosen; no `kinds` means all of them."""
    found: list[Coverage] = []
    for query in chosen_queries(settings, selection):
        source = settings.sources[query.source]
        customers = _customers(ledger, source, selection)
        if customers is None or customers:
            chosen = Selection(
                source=query.source,
                customers=customers,
                queries=query.name,
                since=selection.since,
                until=selection.until,
            )
            found += coverage.coverage_of(ledger, source, query, chosen, strict=strict, cut=cut)
    shown = [each for each in found if not kinds or each.kind in kinds]
    return CoverageListing(shown, Counter(each.kind for each in found))


def _customers(ledger: LedgerReader, source: SourceSettings, selection: Selection) -> list[str] | None:
    """Return the customers chosen that a source has: nothing of another's customers is missing here."""
    if selection.customers is None:
        return None
    return [
        each
        for each in selection.customers
        if each in source.customers or ledger.knows(source=source.name, customer=each)
    ]
