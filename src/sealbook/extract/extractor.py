"""Extraction in a worker: fetch ranges, write and seal their days, with a bounded pool of threads."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from itertools import chain
from threading import Semaphore

from sealbook.clock import utc_now
from sealbook.config import Limits
from sealbook.errors import (
    AlreadySealed,
    ConfigError,
    Forbidden,
    PastHorizon,
    QuotaExceeded,
    Transient,
    Unwritable,
)
from sealbook.extract.allowance import ALONE, Allowance, TimeIsUp
from sealbook.extract.by_day import by_day
from sealbook.extract.limits import RequestLimiter
from sealbook.extract.quotas import UsedUpQuotas
from sealbook.extract.range_results import RangeResults
from sealbook.extract.ranges import NotRanged, Range
from sealbook.extract.results import Ending, Extracted
from sealbook.extract.retry import RetryPolicy, with_retries
from sealbook.extract.source import Bounded, Ranged, Source, load_source
from sealbook.model import RunId
from sealbook.model.contract import Query
from sealbook.model.horizons import Horizons
from sealbook.model.sealed_day import SealedDay
from sealbook.model.universe import Account
from sealbook.raw import Payload, RawStore, Row
from sealbook.spark.tasks import attempt_number
from sealbook.storage.ahead import IN_FLIGHT, ahead

_OF_EVERY_DAY = (ConfigError, Forbidden, QuotaExceeded, TimeIsUp, Unwritable)
"""Errors that any other day would end with, too: to ask for fewer days would be in vain."""


@dataclass(frozen=True)
class Extractor:
    """All that a worker needs for the partitions of one source in one run. It holds no state writer.

    A run that `resumes` may have sealed some of them before, and asks before it fetches. One that does not
    saves the question: should it be wrong, the seal says so.
    """

    run_id: RunId
    source_type: str
    queries: Mapping[str, Query]
    raw_url: str
    options: Mapping[str, object] = field(repr=False)  # may hold secrets
    limits: Limits = field(default_factory=Limits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    processes: int = 1
    resumes: bool = True
    allowance: Allowance = ALONE
    accounts: Mapping[str, Account] = field(default_factory=dict)
    """By customer; one that is not given has days in UTC."""

    def __call__(self, ranges: Sequence[Range]) -> list[Extracted]:
        """Extract ranges, several at once; a day that fails is a result like the others."""
        # Made before there are threads, which must share them.
        self._limiter, self._fetches, self._quotas, self._asks  # noqa: B018
        # Whoever waits for the storage keeps nobody from the source, and the other way round.
        done = ahead(self.extract, ranges, at_once=max(self.limits.threads, IN_FLIGHT))
        return list(chain.from_iterable(done))

    def extract(self, days: Range) -> list[Extracted]:
        """Fetch the days of a range, write and seal each, unless this run has done so before."""
        results = RangeResults(self.run_id, days)
        self._extract(days, results)
        return results.results()

    def _extract(self, days: Range, results: RangeResults) -> None:
        """Extract days; the halves of what failed are asked for again, so that a bad day fails alone."""
        error = self._tried(days, results)
        if error is None:
            return
        left = results.left(days)
        if len(left) > 1 and self._splits(error):
            self._extract(left[: len(left) // 2], results)
            self._extract(left[len(left) // 2 :], results)
            return
        if len(left) > 1 and isinstance(error, PastHorizon):
            # Of the oldest it is known. The others may only not be asked for together with it.
            results.fail(left[:1], error)
            error = Transient(f"{left[1]} …: asked for together with a day past the horizon")
        results.fail(left, error, each=isinstance(error, ConfigError | Forbidden))

    def _splits(self, error: Exception) -> bool:
        """Say whether fewer days may be asked for after an error: one that may be a single day's."""
        if self.allowance.once or isinstance(error, _OF_EVERY_DAY):
            return False
        return not isinstance(error, Transient) or error.retry_after is None

    def _tried(self, days: Range, results: RangeResults) -> Exception | None:
        """Extract days as often as the policy allows, and return why some have not ended, if so it is."""
        try:
            if self._asks:
                self._skip_sealed(days, results)
            self._fail_past_horizon(days, results)
            if results.left(days):
                self.allowance.check_first(attempt_number())
                retry = replace(self.retry, tries=1) if self.allowance.once else self.retry
                with_retries(lambda: self._try(results.left(days), results), retry)
        except Exception as error:  # noqa: BLE001 - a source is foreign code: whatever it raises is the result
            return error
        return None

    def _skip_sealed(self, days: Range, results: RangeResults) -> None:
        for key in days:
            if self._store.is_sealed(key, self.run_id):
                results.seal(key, Ending.SKIPPED, self._store.metadata(key, self.run_id))

    def _fail_past_horizon(self, days: Range, results: RangeResults) -> None:
        """Ask for no day that the source does not give any more; the others of the range are."""
        if self._first_day is None:
            return
        horizons = Horizons({days[0].source: self._first_day})
        for key in results.left(days):
            if horizons.is_past(key):
                results.fail((key,), PastHorizon(f"{key}: not asked for, as {horizons.why(key.source)}"))

    def _try(self, days: Range, results: RangeResults) -> None:
        """Make one whole try: a stream that broke cannot go on, so nothing smaller can be repeated.

        No day is sealed before the stream has ended: until then nobody knows whether one is whole.
        """
        query = self.queries[days[0].query_name].on(days[0].logical_date)
        asked_at = utc_now()
        payloads: list[Payload] = []
        try:
            with closing(self._rows(days, query, results)) as rows:
                for key, own in by_day(rows, days):
                    payloads.append(self._store.write(key, self.run_id, own))
        except BaseException:
            self._store.discard(payloads)
            raise
        for payload in payloads:
            self._seal(payload, query, asked_at, results)

    def _seal(self, payload: Payload, query: Query, asked_at: datetime, results: RangeResults) -> None:
        customer_id = payload.key.customer_id
        account = self.accounts.get(customer_id) or Account(customer_id)
        day = SealedDay.of(account, payload.key.logical_date, asked_at=asked_at)
        try:
            seal = self._store.seal(
                payload.key,
                self.run_id,
                payload,
                schema_version=query.schema_version,
                query_hash=query.hash,
                extracted_at=utc_now(),
                api_version=query.api_version,
                extra=day.to_fields(),
            )
        except AlreadySealed:
            seal = self._store.metadata(payload.key, self.run_id)
            results.seal(payload.key, Ending.SKIPPED, seal)
        else:
            results.seal(payload.key, Ending.SEALED, seal)

    def _rows(
        self, days: Range, query: Query, results: RangeResults
    ) -> Generator[tuple[date, Row], None, None]:
        """Yield the rows of days, each with its day, as one of so many fetches at once as the limits allow.

        It is one request, which is noted before the source is asked.
        """
        with self._fetches:
            self._quotas.check(days[0])
            self._limiter.acquire(days[0].customer_id)
            self.allowance.check_time()
            results.ask(days)
            try:
                yield from self._fetch(days, query)
            except QuotaExceeded as failure:
                self._quotas.learn(days[0], failure)
                raise

    def _fetch(self, days: Range, query: Query) -> Iterator[tuple[date, Row]]:
        if len(days) == 1:
            [key] = days
            return ((key.logical_date, row) for row in self._source.fetch(key, query))
        if not isinstance(self._source, Ranged):
            raise NotRanged(f"source {days[0].source} takes one day in a request, not {len(days)}")
        return self._source.fetch_range(days, query)

    @cached_property
    def _asks(self) -> bool:
        """Whether some partitions may be sealed already: by an earlier go of the run, or of this task."""
        return self.resumes or attempt_number() > 0

    @cached_property
    def _source(self) -> Source:
        return load_source(self.source_type, self.options)

    @cached_property
    def _first_day(self) -> date | None:
        """The first day that the source still gives, if there is one."""
        return self._source.horizon(utc_now().date()) if isinstance(self._source, Bounded) else None

    @cached_property
    def _store(self) -> RawStore:
        return RawStore.open(self.raw_url)

    @cached_property
    def _quotas(self) -> UsedUpQuotas:
        return UsedUpQuotas()

    @cached_property
    def _fetches(self) -> Semaphore:
        return Semaphore(self.limits.threads)

    @cached_property
    def _limiter(self) -> RequestLimiter:
        return RequestLimiter(
            requests_per_second=self.allowance.of(self.limits.requests_per_second),
            requests_per_second_per_customer=self.allowance.of(self.limits.requests_per_second_per_customer),
            processes=self.processes,
        )
