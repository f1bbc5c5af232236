"""Extraction in a worker: fetch, write and seal partitions with a bounded pool of threads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Semaphore

from sealbook.clock import utc_now
from sealbook.config import Limits
from sealbook.errors import AlreadySealed, QuotaExceeded, Transient
from sealbook.extract.allowance import ALONE, Allowance, TimeIsUp
from sealbook.extract.limits import RequestLimiter
from sealbook.extract.quotas import UsedUpQuotas
from sealbook.extract.results import Ending, Extracted
from sealbook.extract.retry import RetryPolicy, with_retries
from sealbook.extract.source import Source, load_source
from sealbook.model import PartitionKey, RunId
from sealbook.model.contract import Query
from sealbook.model.failures import ErrorClass
from sealbook.model.sealed_day import SealedDay
from sealbook.model.universe import Account
from sealbook.raw import RawMetadata, RawStore, Row
from sealbook.spark.tasks import attempt_number
from sealbook.storage.ahead import IN_FLIGHT, ahead


@dataclass(frozen=True)
class Extractor:
    """All that a worker needs for the partitions of one source in one run. It holds no state writer.

    A run that `resumes` may have sealed some of them before, and asks before it fetches. One that does not
    saves the question: should it be wrong, the seal says so.
    """

    run_id: RunId
    source_name: str
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

    def __call__(self, keys: Sequence[PartitionKey]) -> list[Extracted]:
        """Extract partitions, several at once; one that fails is a result like the others."""
        # Made before there are threads, which must share them.
        self._limiter, self._fetches, self._quotas, self._asks  # noqa: B018
        # Whoever waits for the storage keeps nobody from the source, and the other way round.
        return list(ahead(self.extract, keys, at_once=max(self.limits.threads, IN_FLIGHT)))

    def extract(self, key: PartitionKey) -> Extracted:
        """Fetch a partition, write it and seal it, unless this run has done so before."""
        started = time.monotonic()
        asked: list[PartitionKey] = []
        try:
            ending, seal = self._sealed(key, asked)
        except TimeIsUp:
            return Extracted(
                key, self.run_id, Ending.LEFT, seconds=time.monotonic() - started, requests=len(asked)
            )
        except Exception as error:  # noqa: BLE001 - a source is foreign code: whatever it raises is the result
            return Extracted(
                key,
                self.run_id,
                Ending.FAILED,
                seconds=time.monotonic() - started,
                error_class=ErrorClass.of(error),
                error_message=str(error) or type(error).__name__,
                retry_after=error.retry_after if isinstance(error, Transient) else None,
                quota_scope=error.scope if isinstance(error, QuotaExceeded) else None,
                requests=len(asked),
            )
        seconds = time.monotonic() - started
        return Extracted(key, self.run_id, ending, seconds=seconds, seal=seal, requests=len(asked))

    def _sealed(self, key: PartitionKey, asked: list[PartitionKey]) -> tuple[Ending, RawMetadata]:
        try:
            if self._asks and self._store.is_sealed(key, self.run_id):
                return Ending.SKIPPED, self._store.metadata(key, self.run_id)
            self.allowance.check_first(attempt_number())
            retry = replace(self.retry, tries=1) if self.allowance.once else self.retry
            return Ending.SEALED, with_retries(lambda: self._try(key, asked), retry)
        except AlreadySealed:
            return Ending.SKIPPED, self._store.metadata(key, self.run_id)

    def _try(self, key: PartitionKey, asked: list[PartitionKey]) -> RawMetadata:
        """Make one whole try: a stream that broke cannot go on, so nothing smaller can be repeated."""
        query = self.queries[key.query_name].on(key.logical_date)
        account = self.accounts.get(key.customer_id) or Account(key.customer_id)
        day = SealedDay.of(account, key.logical_date, asked_at=utc_now())
        payload = self._store.write(key, self.run_id, self._rows(key, query, asked))
        return self._store.seal(
            key,
            self.run_id,
            payload,
            schema_version=query.schema_version,
            query_hash=query.hash,
            extracted_at=utc_now(),
            api_version=query.api_version,
            extra=day.to_fields(),
        )

    def _rows(self, key: PartitionKey, query: Query, asked: list[PartitionKey]) -> Iterator[Row]:
        """Yield a partition's rows, as one of so many fetches at once as the limits allow.

        That the source is asked is noted in `asked` before it is.
        """
        with self._fetches:
            self._quotas.check(key)
            self._limiter.acquire(key.customer_id)
            self.allowance.check_time()
            asked.append(key)
            try:
                yield from self._source.fetch(key, query)
            except QuotaExceeded as failure:
                self._quotas.learn(key, failure)
                raise

    @cached_property
    def _asks(self) -> bool:
        """Whether some partitions may be sealed already: by an earlier go of the run, or of this task."""
        return self.resumes or attempt_number() > 0

    @cached_property
    def _source(self) -> Source:
        return load_source(self.source_name, self.options)

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
