"""What earlier runs of the same partitions have to say: their record counts, and their order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionKey, RunId
from sealbook.model.selection import Selection
from sealbook.validate.plan import Candidate

T = TypeVar("T")


class AcceptedCounts:
    """The record counts of accepted runs: those in the ledger, and those accepted since."""

    def __init__(self) -> None:
        self._runs: dict[PartitionKey, list[tuple[RunId, int]]] = defaultdict(list)

    @classmethod
    def load(cls, reader: LedgerReader, keys: Iterable[PartitionKey]) -> AcceptedCounts:
        """Read the counts of some partitions, of which there is at least one."""
        counts = cls()
        for key, run_id, count in reader.accepted_counts(Selection(keys=keys)):
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


class InRunOrder(Generic[T]):
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
