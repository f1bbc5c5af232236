"""Extraction in a worker: fetch, write and seal partitions with a bounded pool of threads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Semaphore

from sealbook.clock import utc_now
from sealbook.config import Limits
from sealbook.errors import AlreadySealed, Transient
from sealbook.extract.limits import RequestLimiter
from sealbook.extract.results import Ending, Extracted
from sealbook.extract.retry import RetryPolicy, with_retries
from sealbook.extract.source import Source, load_source
from sealbook.model import PartitionKey, RunId
from sealbook.model.contract import Query
from sealbook.model.failures import ErrorClass
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

    def __call__(self, keys: Sequence[PartitionKey]) -> list[Extracted]:
        """Extract partitions, several at once; one that fails is a result like the others."""
        self._limiter, self._fetches, self._asks  # noqa: B018 - made before there are threads, which must share them
        # Whoever waits for the storage keeps nobody from the source, and the other way round.
        return list(ahead(self.extract, keys, at_once=max(self.limits.threads, IN_FLIGHT)))

    def extract(self, key: PartitionKey) -> Extracted:
        """Fetch a partition, write it and seal it, unless this run has done so before."""
        started = time.monotonic()
        try:
            ending, seal = self._sealed(key)
        except Exception as error:  # noqa: BLE001 - a source is foreign code: whatever it raises is the result
            return Extracted(
                key,
                self.run_id,
                Ending.FAILED,
                seconds=time.monotonic() - started,
                error_class=ErrorClass.of(error),
                error_message=str(error) or type(error).__name__,
                retry_after=error.retry_after if isinstance(error, Transient) else None,
            )
        return Extracted(key, self.run_id, ending, seconds=time.monotonic() - started, seal=seal)

    def _sealed(self, key: PartitionKey) -> tuple[Ending, RawMetadata]:
        try:
            if self._asks and self._store.is_sealed(key, self.run_id):
                return Ending.SKIPPED, self._store.metadata(key, self.run_id)
            return Ending.SEALED, with_retries(lambda: self._try(key), self.retry)
        except AlreadySealed:
            return Ending.SKIPPED, self._store.metadata(key, self.run_id)

    def _try(self, key: PartitionKey) -> RawMetadata:
        """Make one whole try: a stream that broke cannot go on, so nothing smaller can be repeated."""
        query = self.queries[key.query_name]
        payload = self._store.write(key, self.run_id, self._rows(key, query))
        return self._store.seal(
            key,
            self.run_id,
            payload,
            schema_version=query.schema_version,
            query_hash=query.hash,
            extracted_at=utc_now(),
            api_version=query.api_version,
        )

    def _rows(self, key: PartitionKey, query: Query) -> Iterator[Row]:
        """Yield a partition's rows, as one of so many fetches at once as the limits allow."""
        with self._fetches:
            self._limiter.acquire(key.customer_id)
            yield from self._source.fetch(key, query)

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
    def _fetches(self) -> Semaphore:
        return Semaphore(self.limits.threads)

    @cached_property
    def _limiter(self) -> RequestLimiter:
        return RequestLimiter(
            requests_per_second=self.limits.requests_per_second,
            requests_per_second_per_customer=self.limits.requests_per_second_per_customer,
            processes=self.processes,
        )
