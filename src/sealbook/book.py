"""The composition root: from settings to the parts of a book, each opened when first asked for."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sealbook.config import Settings
    from sealbook.extract.results import Extracted
    from sealbook.ledger import Ledger
    from sealbook.ledger.pointers import PointerFilters
    from sealbook.load.loader import Loader
    from sealbook.load.results import Loaded
    from sealbook.model import PartitionKey, RunId
    from sealbook.model.contract import Query
    from sealbook.model.publication import Coverage
    from sealbook.raw import RawStore
    from sealbook.read.plan import Filters, ReadPlan
    from sealbook.validate import Validator


class Book:
    """A configured book. Use it as a context manager, or close it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def ledger(self) -> Ledger:
        """The state of every partition."""
        from sealbook.ledger import open_ledger

        return open_ledger(self.settings.ledger)

    @cached_property
    def raw(self) -> RawStore:
        """The sealed raw partitions."""
        from sealbook.raw import RawStore

        return RawStore.open(self.settings.raw)

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session of this process."""
        from sealbook.spark.session import spark_session

        return spark_session(self.settings.spark)

    def extract(
        self, plan: Mapping[str, Sequence[PartitionKey]], run_id: RunId
    ) -> Generator[list[Extracted], None, None]:
        """Extract partitions, given by source, as part of a run; yield results as they come."""
        from sealbook.chronicle import steps_of
        from sealbook.extract.extractor import Extractor
        from sealbook.extract.job import extract
        from sealbook.model.pipeline_events import PipelineStep

        sealed = 0
        with steps_of(self.ledger.run_store, PipelineStep.EXTRACT, [run_id]) as steps:
            for name, keys in plan.items():
                source = self.settings.sources[name]
                extractor = Extractor(
                    run_id=run_id,
                    source_name=name,
                    queries=source.queries,
                    raw_url=self.settings.raw,
                    options=source.options,
                    limits=source.limits,
                )
                with closing(extract(self.spark, extractor, keys)) as batches:
                    for batch in batches:
                        steps.tell_extracted(batch)
                        sealed += sum(result.seal is not None for result in batch)
                        yield batch
            if not sealed:
                steps.fail_runs([run_id], "no partition could be extracted")

    @property
    def validator(self) -> Validator:
        """The validator, which judges what is sealed."""
        from sealbook.validate import Validator

        return Validator(self.ledger, self.raw, self._queries, lambda: self.spark)

    @property
    def loader(self) -> Loader:
        """The loader, which publishes what is accepted."""
        from sealbook.load.loader import Loader

        return Loader(
            self.ledger.pointers,
            self._queries,
            lambda: self.spark,
            raw_url=self.settings.raw,
            warehouse_url=self.settings.warehouse,
        )

    def load(
        self, *, again: bool = False, **filters: Unpack[PointerFilters]
    ) -> Generator[list[Loaded], None, None]:
        """Publish what is accepted and hide what is not any more; yield results as they come.

        `again` also stages published artifacts that are missing or damaged.
        """
        loader = self.loader
        return loader.load(loader.plan(again=again, **filters))

    def read(
        self,
        query_name: str,
        *,
        spark: SparkSession | None = None,
        source: str | None = None,
        columns: Iterable[str] | None = None,
        scan: str = "auto",
        **filters: Unpack[Filters],
    ) -> DataFrame:
        """Return what is published of a query as a Spark DataFrame, as of now or of a cut (R-CON-1).

        Filters: `customers`, `since`, `until`, `runs`; `strict` leaves out what is behind; `cut` is a token.
        """
        from sealbook.read.frame import read_frame

        plan = self._plan_read(query_name, source, columns, filters)
        return read_frame(spark or self.spark, self.settings.warehouse, plan, scan)

    def table(
        self,
        query_name: str,
        *,
        source: str | None = None,
        columns: Iterable[str] | None = None,
        **filters: Unpack[Filters],
    ) -> pa.Table:
        """Return the same as an Arrow table, without Spark."""
        from sealbook.read.table import read_table
        from sealbook.warehouse.part_files import PartFiles

        plan = self._plan_read(query_name, source, columns, filters)
        return read_table(PartFiles(self.settings.warehouse), plan)

    def sql(self, text: str, *, strict: bool = False, cut: str | None = None) -> pa.Table:
        """Answer a question in SQL, in which every configured query is a table, without Spark."""
        from sealbook.read.sql import run_sql
        from sealbook.warehouse.part_files import PartFiles

        files = PartFiles(self.settings.warehouse)
        return run_sql(text, self.ledger.pointers, self.settings.sources, files, strict=strict, cut=cut)

    def coverage(
        self,
        query_name: str,
        *,
        source: str | None = None,
        customers: Collection[str] | None = None,
        since: date | None = None,
        until: date | None = None,
        strict: bool = False,
        cut: str | None = None,
    ) -> list[Coverage]:
        """Say of every partition of a query what a read gets of it, and why not more (R-CON-3).

        By default: all customers, from the first day to the last that the ledger knows.
        """
        from sealbook.read.plan import check_span, find_query
        from sealbook.status.coverage import coverage_of

        check_span(since, until)
        query = find_query(self.settings.sources, query_name, source)
        settings = self.settings.sources[query.source]
        return coverage_of(
            self.ledger,
            settings,
            query,
            customers=customers,
            since=since,
            until=until,
            strict=strict,
            cut=cut,
        )

    @property
    def _queries(self) -> list[Query]:
        return [query for source in self.settings.sources.values() for query in source.queries.values()]

    def _plan_read(
        self, query_name: str, source: str | None, columns: Iterable[str] | None, filters: Filters
    ) -> ReadPlan:
        from sealbook.read.plan import check_span, find_query, plan_read

        check_span(filters.get("since"), filters.get("until"))
        query = find_query(self.settings.sources, query_name, source)
        return plan_read(self.ledger.pointers, query, columns=columns, **filters)

    def close(self) -> None:
        """Close what was opened; the book opens it again when asked to."""
        ledger: Ledger | None = self.__dict__.pop("ledger", None)
        if ledger is not None:
            ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
