"""The stage of extraction: plans what is configured, and has it fetched and sealed on Spark."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from sealbook.config import SourceSettings
from sealbook.extract.checking import check_sources
from sealbook.extract.extractor import Extractor
from sealbook.extract.plan import ExtractPlan, plan_extraction
from sealbook.extract.results import Extracted
from sealbook.model import RunId
from sealbook.model.progress import OnProgress, no_progress
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

        ConfigError if a source of them could fetch nothing.
        """
        plan = plan_extraction(self._sources, selection)
        check_sources(self._sources, plan.parts)
        return plan

    def begin(self, plan: ExtractPlan) -> None:
        """Start what a plan needs if it has any work, so that this fails before the work begins."""
        if plan.keys:
            self._spark()

    def run(
        self,
        plan: ExtractPlan,
        run_id: RunId,
        on_progress: OnProgress = no_progress,
        *,
        resumes: bool = True,
    ) -> Generator[list[Extracted], None, None]:
        """Carry a plan out as part of a run, and yield results as tasks end; what it has sealed is skipped.

        A partition that fails is a result like the others. Closing the iterator stops the job. A run that is
        known not to resume anything saves a request for each partition.
        """
        from sealbook.extract.job import extract

        for name, keys in plan.keys.items():
            source = self._sources[name]
            extractor = Extractor(
                run_id=run_id,
                source_name=name,
                queries=source.queries,
                raw_url=self._raw_url,
                options=source.options,
                limits=source.limits,
                resumes=resumes,
            )
            with closing(extract(self._spark(), extractor, keys)) as batches:
                for batch in batches:
                    on_progress(
                        len(batch),
                        rows=sum(result.record_count for result in batch),
                        size=sum(result.payload_bytes for result in batch),
                    )
                    yield batch
