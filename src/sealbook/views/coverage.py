"""What reads get of every partition that is chosen, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from sealbook.config import Settings, SourceSettings
from sealbook.ledger.reader import LedgerReader
from sealbook.model.publication import Coverage, CoverageKind
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName, Universe
from sealbook.status.coverage import coverage_of
from sealbook.views.contracts import chosen_queries


class CoverageListing:
    """Every query that is chosen, covered; streamed once, and counted while it is."""

    def __init__(
        self,
        settings: Settings,
        ledger: LedgerReader,
        universe: Universe,
        selection: Selection,
        *,
        kinds: Collection[CoverageKind] = (),
        strict: bool = False,
        cut: str | None = None,
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._universe = universe
        self._selection = selection
        self._kinds = kinds
        self._strict = strict
        self._cut = cut
        self.counts: Counter[CoverageKind] = Counter()
        """How many partitions of each kind were found so far, listed or not."""

    def __iter__(self) -> Iterator[Coverage]:
        """Yield the partitions of the kinds that are wanted; no kinds means all of them."""
        for each in self._found():
            self.counts[each.kind] += 1
            if not self._kinds or each.kind in self._kinds:
                yield each

    def _found(self) -> Iterator[Coverage]:
        selection = self._selection
        for query in chosen_queries(self._settings, selection):
            source = self._settings.sources[query.source]
            customers = _customers(self._ledger, source, selection)
            if customers is None or customers:
                chosen = Selection(
                    source=query.source,
                    customers=customers,
                    queries=query.name,
                    since=selection.since,
                    until=selection.until,
                )
                asset = AssetName(query.source, query.name)
                yield from coverage_of(
                    self._ledger, self._universe, asset, chosen, strict=self._strict, cut=self._cut
                )


def _customers(ledger: LedgerReader, source: SourceSettings, selection: Selection) -> list[str] | None:
    """Return the customers chosen that a source has: nothing of another's customers is missing here."""
    if selection.customers is None:
        return None
    return [
        each
        for each in selection.customers
        if each in source.customers or ledger.knows(source=source.name, customer=each)
    ]
