"""States as they are listed: any number of them, counted while they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, starmap

from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionKey, PartitionState, Status
from sealbook.model.failures import LastFailure
from sealbook.model.outlook import Outlook
from sealbook.model.selection import Selection
from sealbook.status.failures import with_failures
from sealbook.status.outlooks import Outlooks

_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class InspectedState:
    """The state of a partition, how its last attempt failed, if it did, and what is to be done next."""

    state: PartitionState
    last_failure: LastFailure | None = None
    outlook: Outlook | None = None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.state.key

    @property
    def error(self) -> str | None:
        """What went wrong, with its judgement and with its last attempt."""
        said = [self.state.error_message, None if self.last_failure is None else str(self.last_failure)]
        return "; ".join(each for each in said if each is not None) or None

    def to_dict(self) -> dict[str, object]:
        """Return the columns of the state, and the failure and the schedule where there is one."""
        failure = {} if self.last_failure is None else {"last_failure": self.last_failure}
        schedule = {} if self.outlook is None else {"schedule": self.outlook.to_dict()}
        return {**self.state._asdict(), **failure, **schedule}


class StateListing:
    """The states that are chosen, streamed once; partitions that are named are shown in the order given.

    One that nobody has judged is pending: it is in the list if it is named, or if an attempt at it failed.
    """

    def __init__(self, ledger: LedgerReader, selection: Selection, limit: int | None = None) -> None:
        self._ledger = ledger
        self._selection = selection
        self._limit = limit
        self.counts: Counter[Status] = Counter()
        """How many were listed so far, by status."""

    def __iter__(self) -> Iterator[InspectedState]:
        found = self._named() if self._selection.keys else self._found()
        wanted = self._selection.statuses
        chosen = (each for each in found if wanted is None or each.state.status in wanted)
        outlooks = Outlooks(self._ledger.schedule, self._ledger.now())
        for each, outlook in outlooks.beside(islice(chosen, self._limit)):
            self.counts[each.state.status] += 1
            yield replace(each, outlook=outlook)

    @property
    def total(self) -> int | None:
        """How many there are, if the limit may have left some out."""
        if self._selection.keys or self.counts.total() != self._limit:
            return None
        judged = sum(self._ledger.status_counts(self._selection).values())
        return judged + sum(1 for _ in self._never_judged())

    def _named(self) -> Iterator[InspectedState]:
        failures = dict(self._ledger.partition_log.last_failures(self._selection))
        for key in self._selection.keys:
            yield InspectedState(self._ledger.state(key), failures.get(key))

    def _found(self) -> Iterator[InspectedState]:
        judged = with_failures(self._ledger.states(self._selection), self._failures())
        return merge(starmap(InspectedState, judged), self._never_judged(), key=lambda each: each.state.key)

    def _never_judged(self) -> Iterator[InspectedState]:
        """Yield partitions without a state, at which an attempt failed."""
        if self._selection.statuses is not None and Status.PENDING not in self._selection.statuses:
            return
        remaining = self._failures()
        while some := dict(islice(remaining, _AT_ONCE)):
            known = {state.key for state in self._ledger.states(Selection(keys=some))}
            for key, failure in some.items():
                if key not in known:
                    yield InspectedState(PartitionState.pending(key), failure)

    def _failures(self) -> Iterator[tuple[PartitionKey, LastFailure]]:
        return self._ledger.partition_log.last_failures(self._selection)
