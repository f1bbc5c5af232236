"""The composition root: from settings to the parts of a book, each opened when first asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sealbook.config import Settings, SourceSettings, check_selection, find_query
from sealbook.config.documents import error_in
from sealbook.errors import ConfigError, InvalidInput, Permanent, Unwritable
from sealbook.model.keys import check_key
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sealbook.extract.extraction import Extraction
    from sealbook.extract.plan import ExtractPlan
    from sealbook.extract.results import Extracted, ExtractOutcome
    from sealbook.ledger import Ledger, LedgerReader
    from sealbook.ledger.rollbacks import RolledBack
    from sealbook.load.loader import LoadPlan
    from sealbook.load.results import Loaded, LoadOutcome
    from sealbook.model import PartitionKey, RunId
    from sealbook.model.contract import Query
    from sealbook.model.publication import Coverage
    from sealbook.pipeline import Pipeline, RunOutcome, StageBatch
    from sealbook.raw import RawReader
    from sealbook.read.plan import ReadPlan
    from sealbook.validate.plan import ValidatePlan, Which
    from sealbook.validate.results import Result, ValidateOutcome

EVERYTHING = Selection()


class _Readable(ABC):
    """What both sides of a book have: settings, raw partitions, Spark, and what is published."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @property
    @abstractmethod
    def _reads(self) -> LedgerReader: ...

    @abstractmethod
    def close(self) -> None:
        """Close what was opened."""

    @cached_property
    def raw(self) -> RawReader:
        """The sealed raw partitions."""
        from sealbook.raw import RawReader

        return RawReader.open(self.settings.raw)

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session of this process."""
        from sealbook.spark.session import spark_session

        return spark_session(self.settings.spark)

    @property
    def queries(self) -> list[Query]:
        """Every configured query."""
        return [query for source in self.settings.sources.values() for query in source.queries.values()]

    def check(self, selection: Selection) -> None:
        """Refuse names that are neither configured nor known to the ledger."""
        check_selection(self.settings.sources, selection, self._knows)

    def _knows(self, what: str, name: str) -> bool:
        return self._reads.knows(**{what: name})

    def read(
        self,
        query_name: str,
        *,
        spark: SparkSession | None = None,
        source: str | None = None,
        columns: Iterable[str] | None = None,
        scan: str = "auto",
        customers: str | Collection[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        runs: str | Collection[str] | None = None,
        strict: bool = False,
        cut: str | None = None,
    ) -> DataFrame:
        """Return what is published of a query as a Spark DataFrame, as of now or of a cut (R-CON-1).

        `strict` leaves out what is behind; `cut` is a token; a `scan` is chosen by itself.
        """
        from sealbook.read.frame import read_frame

        chosen = Selection(customers=customers, since=since, until=until, runs=runs)
        plan = self._plan_read(query_name, source, chosen, columns, strict=strict, cut=cut)
        return read_frame(spark or self.spark, self.settings.warehouse, plan, scan)

    def table(
        self,
        query_name: str,
        *,
        source: str | None = None,
        columns: Iterable[str] | None = None,
        customers: str | Collection[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        runs: str | Collection[str] | None = None,
        strict: bool = False,
        cut: str | None = None,
    ) -> pa.Table:
        """Return the same as an Arrow table, without Spark."""
        from sealbook.read.table import read_table
        from sealbook.warehouse.part_files import PartFiles

        chosen = Selection(customers=customers, since=since, until=until, runs=runs)
        plan = self._plan_read(query_name, source, chosen, columns, strict=strict, cut=cut)
        return read_table(PartFiles(self.settings.warehouse), plan)

    def sql(self, text: str, *, strict: bool = False, cut: str | None = None) -> pa.Table:
        """Answer a question in SQL, in which every configured query is a table, without Spark."""
        from sealbook.read.sql import run_sql
        from sealbook.warehouse.part_files import PartFiles

        files = PartFiles(self.settings.warehouse)
        return run_sql(text, self._reads.pointers, self._recorded_sources(), files, strict=strict, cut=cut)

    def coverage(
        self,
        query_name: str,
        *,
        source: str | None = None,
        customers: str | Collection[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        strict: bool = False,
        cut: str | None = None,
    ) -> list[Coverage]:
        """Say of every partition of a query what a read gets of it, and why not more (R-CON-3).

        By default: all customers, from the first day to the last that the ledger knows.
        """
        from sealbook.status.coverage import coverage_of

        query = find_query(self.settings.sources, query_name, source)
        chosen = Selection(
            source=query.source, customers=customers, queries=query_name, since=since, until=until
        )
        settings = self.settings.sources[query.source]
        return list(coverage_of(self._reads, settings, query, chosen, strict=strict, cut=cut))

    def _recorded_sources(self) -> dict[str, SourceSettings]:
        """Return the sources with the contracts by which accepted runs are read (R-WH-7)."""
        as_recorded = self._reads.contracts.as_recorded
        return {
            name: replace(each, queries={query.name: as_recorded(query) for query in each.queries.values()})
            for name, each in self.settings.sources.items()
        }

    def _plan_read(
        self,
        query_name: str,
        source: str | None,
        selection: Selection,
        columns: Iterable[str] | None,
        *,
        strict: bool,
        cut: str | None,
    ) -> ReadPlan:
        from sealbook.read.plan import plan_read

        query = self._reads.contracts.as_recorded(find_query(self.settings.sources, query_name, source))
        return plan_read(self._reads.pointers, query, selection, columns=columns, strict=strict, cut=cut)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BookReader(_Readable):
    """The side of a book that cannot write: hand this to pages and consumers."""

    def __init__(self, settings: Settings, ledger: LedgerReader) -> None:
        super().__init__(settings)
        self.ledger = ledger

    @property
    def _reads(self) -> LedgerReader:
        return self.ledger

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()


class Book(_Readable):
    """A configured book. Use it as a context manager, or close it."""

    @cached_property
    def ledger(self) -> Ledger:
        """The state of every partition."""
        from sealbook.ledger import open_ledger

        return open_ledger(self.settings.ledger)

    @property
    def _reads(self) -> LedgerReader:
        return self.ledger.reader

    def _knows(self, what: str, name: str) -> bool:
        return self._has_ledger and super()._knows(what, name)

    @property
    def _has_ledger(self) -> bool:
        """Whether there is a ledger to ask; none is made only to be asked."""
        from sealbook.ledger import ledger_exists

        return "ledger" in self.__dict__ or ledger_exists(self.settings.ledger)

    @property
    def reader(self) -> BookReader:
        """The side of this book that cannot write; it is closed with the book."""
        return BookReader(self.settings, self.ledger.reader)

    @cached_property
    def extraction(self) -> Extraction:
        """The stage of extraction. Its plan needs no ledger: what is wrong is found before one is opened."""
        from sealbook.extract.extraction import Extraction

        return Extraction(self.settings.sources, self.settings.raw, lambda: self.spark)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stages, and the runs that go through them."""
        from sealbook.load.loader import Loader
        from sealbook.pipeline import Pipeline
        from sealbook.validate.validator import Validator

        ledger, settings = self.ledger, self.settings
        return Pipeline(
            ledger,
            lambda: self.raw,
            self.extraction,
            Validator(
                ledger.reader,
                ledger.verdicts,
                ledger.contracts,
                lambda: self.raw,
                self.queries,
                lambda: self.spark,
            ),
            Loader(
                ledger.pointers,
                self.queries,
                lambda: self.spark,
                raw_url=settings.raw,
                warehouse_url=settings.warehouse,
            ),
            self._start_java,
        )

    def _start_java(self) -> None:
        from sealbook.spark.session import start_java

        start_java(self.settings.spark)

    def plan_extract(self, selection: Selection) -> ExtractPlan:
        """Plan to fetch what is configured and chosen; ConfigError for what would fail in every partition.

        Sources and the raw store are looked at before the ledger is opened, which knows the contracts that
        runs were accepted under. Nothing is written.
        """
        from sealbook.raw import RawStore

        plan = self.extraction.plan(selection)
        with self._place("raw"):
            RawStore.open(self.settings.raw).check()
        self._check_columns(selection)
        return plan

    def plan_run(self, selection: Selection) -> ExtractPlan:
        """Do the same for a run through all stages, which needs the warehouse too."""
        plan = self.plan_extract(selection)
        self._check_warehouse()
        return plan

    def plan_validate(
        self, selection: Selection, which: Which | str = "new", *, dry_run: bool = False
    ) -> ValidatePlan:
        """Plan to judge sealed runs of what is chosen; ConfigError if the raw store is not there."""
        from sealbook.validate.plan import Which

        if which not in list(Which):
            raise InvalidInput.of("which", which, f"one of {', '.join(Which)}")
        self.check(selection)
        self._check_columns(selection)
        self._check_raw()
        return self.pipeline.validator.plan(selection, Which(which), dry_run=dry_run)

    def plan_load(self, selection: Selection, *, rebuild: bool = False, full: bool = False) -> LoadPlan:
        """Plan to publish what is accepted; ConfigError if what that needs is not there."""
        self.check(selection)
        self._check_columns(selection)
        plan = self.pipeline.loader.plan(selection, rebuild=rebuild, full=full)
        if plan.runs or plan.rebuild:
            self._check_raw()
            self._check_warehouse()
        return plan

    def _check_columns(self, selection: Selection) -> None:
        """Refuse columns that were changed under a schema_version that has accepted runs (R-WH-7)."""
        from sealbook.validate.contracts import column_errors

        for query in self.queries if self._has_ledger else ():
            if selection.has_query(query.source, query.name):
                for error in column_errors(self._reads.contracts, query):
                    raise error

    def _check_raw(self) -> None:
        with self._place("raw"):
            self.raw.check()

    def _check_warehouse(self) -> None:
        from sealbook.warehouse.store import ArtifactStore

        with self._place("warehouse"):
            ArtifactStore.open(self.settings.warehouse).check(writing=False)

    @contextmanager
    def _place(self, field: str) -> Iterator[None]:
        """Name the line of the settings in what is wrong with a place; to be full is not wrong."""
        try:
            yield
        except Unwritable:
            raise
        except (ConfigError, Permanent) as error:
            if self.settings.file is None:
                raise ConfigError(f"{field}: {error}", remedy=error.remedy) from error
            raise error_in(self.settings.file, (field,), str(error), remedy=error.remedy) from error

    def extract(self, selection: Selection = EVERYTHING, *, run_id: RunId | None = None) -> ExtractOutcome:
        """Fetch every partition that is configured and chosen, and seal it as part of one run."""
        from sealbook.extract.results import ExtractOutcome

        plan = self.plan_extract(selection)
        outcome = ExtractOutcome(run_id or self.pipeline.open_run())
        for batch in self.pipeline.extract(plan, outcome.run_id):
            outcome.add(batch)
        return outcome

    def iter_extract(
        self, selection: Selection = EVERYTHING, *, run_id: RunId | None = None
    ) -> Generator[list[Extracted], None, None]:
        """Do the same, and yield results as they come."""
        plan = self.plan_extract(selection)
        yield from self.pipeline.extract(plan, run_id or self.pipeline.open_run())

    def validate(
        self, selection: Selection = EVERYTHING, *, which: Which | str = "new", dry_run: bool = False
    ) -> ValidateOutcome:
        """Judge sealed runs of the partitions that are chosen; `which`: new, accepted or rejected ones."""
        from sealbook.validate.results import ValidateOutcome

        plan = self.plan_validate(selection, which, dry_run=dry_run)
        outcome = ValidateOutcome(superseded=plan.superseded)
        for batch in self.pipeline.validate(plan):
            outcome.add(batch)
        return outcome

    def iter_validate(
        self, selection: Selection = EVERYTHING, *, which: Which | str = "new", dry_run: bool = False
    ) -> Generator[list[Result], None, None]:
        """Do the same, and yield results as they come."""
        yield from self.pipeline.validate(self.plan_validate(selection, which, dry_run=dry_run))

    def load(
        self, selection: Selection = EVERYTHING, *, rebuild: bool = False, full: bool = False
    ) -> LoadOutcome:
        """Publish what is accepted of the partitions that are chosen, and hide what is not any more.

        `rebuild` also stages published artifacts that are missing or damaged. `full` compares all states and
        pointers, and not only those noted as changed.
        """
        from sealbook.load.results import LoadOutcome

        outcome = LoadOutcome()
        for batch in self.iter_load(selection, rebuild=rebuild, full=full):
            outcome.add(batch)
        return outcome

    def iter_load(
        self, selection: Selection = EVERYTHING, *, rebuild: bool = False, full: bool = False
    ) -> Generator[list[Loaded], None, None]:
        """Do the same, and yield results as they come."""
        yield from self.pipeline.load(self.plan_load(selection, rebuild=rebuild, full=full))

    def run(self, selection: Selection = EVERYTHING, *, run_id: RunId | None = None) -> RunOutcome:
        """Take every partition that is configured and chosen the whole way, as one run."""
        from sealbook.model import RunStatus
        from sealbook.pipeline import RunOutcome

        plan = self.plan_run(selection)
        outcome = RunOutcome.of(run_id or self.pipeline.open_run())
        for batch in self.pipeline.run(plan, outcome.run_id):
            outcome.add(batch)
        snapshot = self.ledger.run_store.get_snapshot(outcome.run_id)
        outcome.status = RunStatus.PENDING if snapshot is None else snapshot.status
        return outcome

    def iter_run(
        self, selection: Selection = EVERYTHING, *, run_id: RunId | None = None
    ) -> Generator[StageBatch, None, None]:
        """Do the same, and yield the results of each stage as they come."""
        plan = self.plan_run(selection)
        yield from self.pipeline.run(plan, run_id or self.pipeline.open_run())

    def rollback(
        self, key: PartitionKey, run_id: str, *, actor: str, reason: str, dry_run: bool = False
    ) -> RolledBack:
        """Give authority to another run of a partition, which must be accepted and still sealed (R-STATE-9).

        It holds, consumers follow at once, and another rollback undoes it. A dry run says what would be done.
        """
        check_key(key)
        sealed = self.raw.runs(key)
        done = self.ledger.rollbacks.rollback(
            key, run_id, actor=actor, reason=reason, sealed=sealed, dry_run=dry_run
        )
        if not dry_run:
            self.ledger.runs.end_runs([done.from_run_id])  # it may have waited to be loaded
            self.ledger.run_store.projector().catch_up()
        return done

    def close(self) -> None:
        """Close what was opened; the book opens it again when asked to."""
        self.__dict__.pop("pipeline", None)
        ledger: Ledger | None = self.__dict__.pop("ledger", None)
        if ledger is not None:
            ledger.close()
