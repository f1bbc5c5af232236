"""The stage of extraction: plans what is configured, and has it fetched and sealed on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING

from sealbook.clock import utc_now
from sealbook.config import SourceSettings
from sealbook.errors import SealbookError
from sealbook.extract.allowance import ALONE, NO_ALLOWANCES, Allowance
from sealbook.extract.checking import check_sources, log_remarks
from sealbook.extract.extractor import Extractor
from sealbook.extract.horizons import horizons_of
from sealbook.extract.plan import ExtractPlan, plan_extraction
from sealbook.extract.ranges import Ranges
from sealbook.extract.results import Ending, Extracted
from sealbook.model import PartitionKey, RunId
from sealbook.model.progress import OnProgress, no_progress
from sealbook.model.selection import Selection
from sealbook.raw import RawReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOUND_AT_ONCE = 1_000


class Extraction:
    """Fetches partitions and seals them. Spark is started only when there is work for it."""

    def __init__(
        self, sources: Mapping[str, SourceSettings], raw_url: str, spark: Callable[[], SparkSession]
    ) -> None:
        self._sources = sources
        self._raw_url = raw_url
        self._spark = spark

    def plan(self, selection: Selection) -> ExtractPlan:
        """Plan to fetch every partition that is configured and chosen.

        ConfigError if a source of them could fetch nothing; PastHorizon if none gives what is chosen.
        """
        plan = plan_extraction(self._sources, selection)
        log_remarks(check_sources(self._sources, plan.parts))
        return plan.within(horizons_of((self._sources[name] for name in plan.sources), utc_now().date()))

    def begin(self) -> None:
        """Start what fetching needs."""
        self._spark()

    def run(
        self,
        plan: ExtractPlan,
        run_id: RunId,
        on_progress: OnProgress = no_progress,
        *,
        resumes: bool = True,
        begin: Callable[[], None] | None = None,
        allowances: Mapping[str, Allowance] = NO_ALLOWANCES,
    ) -> Generator[list[Extracted], None, None]:
        """Carry a plan out as part of a run, and yield results as tasks end; what it has sealed is skipped.

        A partition that fails is a result like the others. Closing the iterator stops the job. A run that is
        known not to resume anything saves a request for each partition. `begin` is called before anything is
        fetched, unless there is nothing left to fetch. `allowances` say, by source, what may be asked of it.
        """
        for batch in self._batches(plan, run_id, begin or self.begin, allowances, resumes=resumes):
            on_progress(
                len(batch),
                rows=sum(result.record_count for result in batch),
                size=sum(result.payload_bytes for result in batch),
            )
            yield batch

    def _batches(
        self,
        plan: ExtractPlan,
        run_id: RunId,
        begin: Callable[[], None],
        allowances: Mapping[str, Allowance],
        *,
        resumes: bool,
    ) -> Generator[list[Extracted], None, None]:
        found: set[PartitionKey] = set()
        if resumes:
            results = self._found(plan, run_id)
            while batch := list(islice(results, _FOUND_AT_ONCE)):
                found.update(result.key for result in batch)
                yield batch
        left = [name for name, keys in plan.keys.items() if not found.issuperset(keys)]
        if not left:
            return
        begin()
        from sealbook.extract.job import extract

        for name in left:
            source = self._sources[name]
            ranges = plan.ranges(name, Ranges(source), found)
            extractor = Extractor(
                run_id=run_id,
                source_type=source.type,
                queries=source.queries,
                raw_url=self._raw_url,
                options=source.options,
                limits=source.limits,
                resumes=resumes,
                allowance=allowances.get(name, ALONE),
                accounts={
                    customer_id: source.accounts[customer_id]
                    for customer_id in {days[0].customer_id for days in ranges} & source.accounts.keys()
                },
            )
            with closing(extract(self._spark(), extractor, ranges)) as batches:
                yield from batches

    def _found(self, plan: ExtractPlan, run_id: RunId) -> Iterator[Extracted]:
        """Yield what the run has sealed before: to find that out needs no Spark."""
        store = RawReader.open(self._raw_url)

        def find(key: PartitionKey) -> Extracted | None:
            started = time.monotonic()
            try:
                seal = store.metadata(key, run_id)
            except SealbookError:  # not sealed; or something is wrong, which is told when it is fetched
                return None
            return Extracted(key, run_id, Ending.SKIPPED, seconds=time.monotonic() - started, seal=seal)

        return filter(None, store.each(find, chain.from_iterable(plan.keys.values())))
