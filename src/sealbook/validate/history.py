"""What earlier runs of the same partitions have to say: their record counts, and whose turn it is."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from sealbook.ledger import LedgerReads
from sealbook.ledger.states.reader import KeyFilters
from sealbook.model import PartitionKey, RunId
from sealbook.validate.plan import Candidate, Selection

T = TypeVar("T")


class AcceptedCounts:
    """The record counts of accepted runs: those in the ledger, and those accepted since."""

    def __init__(self) -> None:
        self._runs: dict[PartitionKey, list[tuple[RunId, int]]] = defaultdict(list)

    @classmethod
    def load(
        cls, ledger: LedgerReads, selection: Selection, keys: Collection[PartitionKey]
    ) -> AcceptedCounts:
        """Read the counts of some partitions of a selection."""
        counts = cls()
        for filters in _filters(selection):
            for key, run_id, count in ledger.accepted_counts(**filters):
                if key in keys:
                    counts.add(key, run_id, count)
        return counts

    def add(self, key: PartitionKey, run_id: RunId, count: int) -> None:
        """Take in an accepted run."""
        insort(self._runs[key], (run_id, count))

    def before(self, key: PartitionKey, run_id: RunId) -> Sequence[int]:
        """Return the counts of the accepted runs older than this one, the newest first."""
        runs = self._runs.get(key, [])
        older = runs[: bisect_left(runs, run_id, key=lambda run: run[0])]
        return [count for _, count in reversed(older)]


class Turns(Generic[T]):
    """Lets results pass in the order of runs within each partition, whatever the order in which they come."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        ordinals: dict[PartitionKey, list[int]] = defaultdict(list)
        for ordinal, candidate in enumerate(candidates):
            ordinals[candidate.key].append(ordinal)
        self._waiting = {
            key: deque(sorted(several, key=lambda ordinal: candidates[ordinal].run_id))
            for key, several in ordinals.items()
            if len(several) > 1
        }
        self._candidates = candidates
        self._early: dict[int, T] = {}

    def pass_on(self, ordinal: int, result: T) -> Iterator[tuple[int, T]]:
        """Yield a result once those of older runs have passed, and with it newer ones that have waited."""
        waiting = self._waiting.get(self._candidates[ordinal].key)
        if waiting is None:
            yield ordinal, result
            return
        self._early[ordinal] = result
        while waiting and waiting[0] in self._early:
            first = waiting.popleft()
            yield first, self._early.pop(first)


def _filters(selection: Selection) -> Iterable[KeyFilters]:
    if not selection.keys:
        return [selection.filters]
    return [
        {
            "source": key.source,
            "customer_id": key.customer_id,
            "query_name": key.query_name,
            "since": key.logical_date,
            "until": key.logical_date,
        }
        for key in selection.keys
    ]
