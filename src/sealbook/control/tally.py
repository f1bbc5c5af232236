"""What came of what was claimed: counted for people, programs and metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sealbook.extract.results import Ending, Extracted
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import PartitionKey
from sealbook.model.claims import LOST
from sealbook.model.retry import Cause
from sealbook.model.work import Undone
from sealbook.pipeline import StageBatch
from sealbook.validate.results import Judged, NotJudged, Result

_WORDS = {
    Ending.SKIPPED: "sealed",
    LoadEnding.LOADED: "published",
    LoadEnding.REPLACED: "published",
    LoadEnding.IDENTICAL: "published",
    LoadEnding.UNCHANGED: "published",
}
"""What several endings come to."""


@dataclass
class Tally:
    """Results of stages, by source and how they ended."""

    endings: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By source and word: sealed, failed, accepted, rejected, not_judged, published, hidden, lost, left."""
    requests: Counter[PartitionKey] = field(default_factory=Counter)
    fetched: set[PartitionKey] = field(default_factory=set)
    """Of what is known how its fetch ended."""
    left: set[PartitionKey] = field(default_factory=set)
    """What was to be fetched, and was not asked for."""
    undone: dict[PartitionKey, Undone] = field(default_factory=dict)
    """Why nothing could be said, or published, of some."""

    def add(self, batch: StageBatch) -> None:
        """Count the results of a batch."""
        for result in batch.results:
            key = result.verdict.key if isinstance(result, Judged) else result.key
            self.endings[key.source, self._take(key, result)] += 1

    def _take(self, key: PartitionKey, result: Extracted | Result | Loaded) -> str:
        match result:
            case Judged(verdict=verdict):
                return verdict.outcome.value
            case Extracted(ending=ending):
                self.requests[key] += result.requests
                (self.left if ending is Ending.LEFT else self.fetched).add(key)
                return _WORDS.get(ending, ending.value)
            case NotJudged(reason=reason):
                for_good = result.is_misconfigured or result.is_irreplaceable
                cause = Cause.PERMANENT if for_good else Cause.TRANSIENT
                self.undone[key] = Undone(cause, reason, fetch=result.is_gone)
                return "lost" if reason == LOST else "not_judged"
            case Loaded(ending=ending, reason=reason):
                if ending is LoadEnding.SKIPPED:
                    self.undone[key] = Undone(Cause.TRANSIENT, reason or ending.value)
                return "lost" if reason == LOST else _WORDS.get(ending, ending.value)

    def merge(self, other: Tally) -> None:
        """Count what another has counted."""
        self.endings.update(other.endings)
        self.requests.update(other.requests)

    def count(self, word: str) -> int:
        """Return how many partitions ended so, of all sources."""
        return sum(number for (_, ending), number in self.endings.items() if ending == word)
