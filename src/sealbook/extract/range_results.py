"""What came of the days of a range, noted as they end: each is a result of its own."""

from __future__ import annotations

import time
from collections import Counter

from sealbook.errors import QuotaExceeded, Transient
from sealbook.extract.allowance import TimeIsUp
from sealbook.extract.ranges import Range
from sealbook.extract.results import Ending, Extracted
from sealbook.model import PartitionKey, RunId
from sealbook.model.failures import ErrorClass
from sealbook.raw import RawMetadata


class RangeResults:
    """The results of a range as part of a run. A day that has ended does not end again."""

    def __init__(self, run_id: RunId, days: Range) -> None:
        self._run_id = run_id
        self._days = days
        self._started = time.monotonic()
        self._ended: dict[PartitionKey, Extracted] = {}
        self._asked: Counter[PartitionKey] = Counter()

    def ask(self, days: Range) -> None:
        """Note that the source is asked for some days, before it is: the first of them has the request."""
        self._asked[days[0]] += 1

    def seal(self, key: PartitionKey, ending: Ending, seal: RawMetadata) -> None:
        """Note that a day is sealed, now or before."""
        self._end(Extracted(key, self._run_id, ending, time.monotonic() - self._started, seal))

    def fail(self, days: Range, error: Exception, *, each: bool = False) -> None:
        """Note why days failed together, or that time was up before they were asked for.

        An error is of `each` of them if it stays until somebody changes something, and any day would have it.
        """
        left = isinstance(error, TimeIsUp)
        together = [key for key in days if key not in self._ended]
        for key in together:
            self._end(
                Extracted(
                    key,
                    self._run_id,
                    Ending.LEFT if left else Ending.FAILED,
                    time.monotonic() - self._started,
                    error_class=None if left else ErrorClass.of(error),
                    error_message=None if left else str(error) or type(error).__name__,
                    retry_after=error.retry_after if isinstance(error, Transient) else None,
                    quota_scope=error.scope if isinstance(error, QuotaExceeded) else None,
                    days=1 if left or each else len(together),
                )
            )

    def left(self, days: Range) -> Range:
        """Return what has to be fetched of some days: from the first that has not ended to the last."""
        places = [place for place, key in enumerate(days) if key not in self._ended]
        return days[places[0] : places[-1] + 1] if places else ()

    def results(self) -> list[Extracted]:
        """Return the result of each day, in their order."""
        return [self._ended[key].asked_for(self._asked[key]) for key in self._days]

    def _end(self, result: Extracted) -> None:
        self._ended.setdefault(result.key, result)
