"""States as they are listed: any number of them, counted while they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionState, Status
from sealbook.model.selection import Selection


class StateListing:
    """The states that are chosen, streamed once; partitions that are named are shown in the order given.

    One that nobody has judged is pending, and in the list if it is named.
    """

    def __init__(self, ledger: LedgerReader, selection: Selection, limit: int | None = None) -> None:
        self._ledger = ledger
        self._selection = selection
        self._limit = limit
        self.counts: Counter[Status] = Counter()
        """How many were listed so far, by status."""

    def __iter__(self) -> Iterator[PartitionState]:
        for state in islice(self._states(), self._limit):
            self.counts[state.status] += 1
            yield state

    @property
    def total(self) -> int | None:
        """How many there are, if the limit may have left some out."""
        if self._selection.keys or self.counts.total() != self._limit:
            return None
        return sum(self._ledger.status_counts(self._selection).values())

    def _states(self) -> Iterator[PartitionState]:
        if not self._selection.keys:
            yield from self._ledger.states(self._selection)
            return
        wanted = self._selection.statuses
        for key in self._selection.keys:
            state = self._ledger.state(key)
            if wanted is None or state.status in wanted:
                yield state
