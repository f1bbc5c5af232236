"""The composition root: from settings to the parts of a book, each opened when first asked for."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from sealbook.book.checks import check_columns, check_raw, check_rollback, check_warehouse
from sealbook.book.outgoing import Outgoing
from sealbook.book.reader import BookReader
from sealbook.config import check_selection
from sealbook.errors import InvalidInput
from sealbook.model.keys import check_key
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.control.accounts import AccountRefresher
    from sealbook.control.loop import Loop, Tell
    from sealbook.control.operating import Operator
    from sealbook.control.working import Stages
    from sealbook.extract.extraction import Extraction
    from sealbook.extract.plan import ExtractPlan
    from sealbook.extract.results import Extracted, ExtractOutcome
    from sealbook.ledger import Ledger, LedgerReader
    from sealbook.ledger.accounts import AccountReader
    from sealbook.ledger.rollbacks import RolledBack
    from sealbook.load.loader import LoadPlan
    from sealbook.load.results import Loaded, LoadOutcome
    from sealbook.model import PartitionKey, RunId
    from sealbook.model.claims import Lease
    from sealbook.model.work import Lane
    from sealbook.pipeline import Pipeline, RunOutcome, StageBatch
    from sealbook.validate.plan import ValidatePlan, Which
    from sealbook.validate.results import Result, ValidateOutcome

EVERYTHING = Selection()


class Book(Outgoing):
    """A configured book. Use it as a context manager, or close it."""

    @cached_property
    def ledger(self) -> Ledger:
        """The state of every partition."""
        from sealbook.ledger import open_ledger

        control = self.settings.control
        return open_ledger(self.settings.ledger, scope=self.settings.scope, retries=control.retries)

    @property
    def _reads(self) -> LedgerReader:
        return self.ledger.reader

    def _knows(self, what: str, name: str) -> bool:
        return self._has_ledger and super()._knows(what, name)

    def _account_reader(self) -> AccountReader | None:
        return super()._account_reader() if self._has_ledger else None

    @property
    def _has_ledger(self) -> bool:
        """Whether there is a ledger to ask; none is made only to be asked."""
        from sealbook.ledger import ledger_exists

        return "ledger" in self.__dict__ or ledger_exists(self.settings.ledger)

    @property
    def operator(self) -> Operator:
        """What operators do about partitions: retry, reprocess, backfill, give up, pause, cancel."""
        from sealbook.control.operating import Operator

        return Operator(self.settings, self.ledger, lambda: self.raw, self.check, self.horizons)

    @property
    def accounts(self) -> AccountRefresher:
        """Who asks sources for their accounts, for those that discover them."""
        from sealbook.book.sources import LiveSources
        from sealbook.control.accounts import AccountRefresher

        sources = self.settings.sources
        take_up = sources.take_up if isinstance(sources, LiveSources) else lambda: None
        return AccountRefresher(self.ledger, sources, self.settings.control, take_up)

    @property
    def reader(self) -> BookReader:
        """The side of this book that cannot write; it is closed with the book."""
        return BookReader(self.settings, self.ledger.reader)

    @cached_property
    def extraction(self) -> Extraction:
        """The stage of extraction. Its plan needs no ledger: what is wrong is found before one is opened."""
        from sealbook.extract.extraction import Extraction

        return Extraction(self.settings.sources, self.settings.raw, self._stage_spark)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stages, and the runs that go through them."""
        from sealbook.load.loader import Loader
        from sealbook.pipeline import Pipeline
        from sealbook.status.universe import universe_of
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
                self._stage_spark,
                horizons=self.horizons,
            ),
            Loader(
                ledger.pointers,
                self.queries,
                self._stage_spark,
                raw_url=settings.raw,
                warehouse_url=settings.warehouse,
                zone=universe_of(settings.sources, {}).zone,
            ),
            self._start_java,
        )

    def _stage_spark(self) -> SparkSession:
        from sealbook.spark.session import stage_session

        return stage_session(self.settings.spark)

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
        check_raw(self.settings, lambda: RawStore.open(self.settings.raw))
        self._check_columns(selection)
        return plan.besides(self._held(selection))

    def plan_run(self, selection: Selection) -> ExtractPlan:
        """Do the same for a run through all stages, which needs the warehouse too."""
        plan = self.plan_extract(selection)
        check_warehouse(self.settings, writing=True)
        return plan

    def plan_validate(
        self,
        selection: Selection,
        which: Which | str = "new",
        *,
        dry_run: bool = False,
        irreplaceable: bool = False,
    ) -> ValidatePlan:
        """Plan to judge sealed runs of what is chosen; ConfigError if the raw store is not there."""
        from sealbook.validate.plan import Which

        if which not in list(Which):
            raise InvalidInput.of("which", which, f"one of {', '.join(Which)}")
        self.check(selection)
        self._check_columns(selection)
        check_raw(self.settings, lambda: self.raw)
        plan = self.pipeline.validator.plan(
            selection, Which(which), dry_run=dry_run, irreplaceable=irreplaceable
        )
        return plan.besides(self._held(selection))

    def plan_load(self, selection: Selection, *, rebuild: bool = False, full: bool = False) -> LoadPlan:
        """Plan to publish what is accepted; ConfigError if what that needs is not there."""
        self.check(selection)
        self._check_columns(selection)
        plan = self.pipeline.loader.plan(selection, rebuild=rebuild, full=full)
        plan = plan.besides(self._held(selection))
        if plan.runs or plan.rebuild:
            check_raw(self.settings, lambda: self.raw)
            check_warehouse(self.settings, writing=False)
        return plan

    def _check_columns(self, selection: Selection) -> None:
        if self._has_ledger:
            check_columns(self._reads.contracts, self.queries, selection)

    def _held(self, selection: Selection) -> Sequence[Lease]:
        """Return what others are working on: whoever works by hand leaves it to them (R-CTL-4)."""
        chosen = replace(selection, runs=None, statuses=None)
        return self._reads.schedule.held(chosen) if self._has_ledger else ()

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
        self,
        selection: Selection = EVERYTHING,
        *,
        which: Which | str = "new",
        dry_run: bool = False,
        irreplaceable: bool = False,
    ) -> ValidateOutcome:
        """Judge sealed runs of the partitions that are chosen; `which`: new, accepted or rejected ones.

        Verdicts that take the only copy of a day from consumers are withheld; `irreplaceable` confirms them.
        """
        from sealbook.validate.results import ValidateOutcome

        plan = self.plan_validate(selection, which, dry_run=dry_run, irreplaceable=irreplaceable)
        outcome = ValidateOutcome(superseded=plan.superseded)
        for batch in self.pipeline.validate(plan):
            outcome.add(batch)
        return outcome

    def iter_validate(
        self,
        selection: Selection = EVERYTHING,
        *,
        which: Which | str = "new",
        dry_run: bool = False,
        irreplaceable: bool = False,
    ) -> Generator[list[Result], None, None]:
        """Do the same, and yield results as they come."""
        plan = self.plan_validate(selection, which, dry_run=dry_run, irreplaceable=irreplaceable)
        yield from self.pipeline.validate(plan)

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

    def loop(
        self,
        sources: Collection[str] | None = None,
        lanes: Collection[Lane] | None = None,
        *,
        batch: int | None = None,
        tell: Tell | None = None,
        stages: Stages | None = None,
    ) -> Loop:
        """Return a loop on this book: `tick` works on what is ready, `serve` until it is stopped.

        It opens and does the work of all `sources` and `lanes`, or of these. What would fail in every
        partition is refused before: a ConfigError. `tell` hears what happens; `stages` take the place of the
        pipeline.
        """
        from sealbook.control.loop import BATCH, Loop
        from sealbook.control.round import RoundOpener
        from sealbook.control.working import Worker
        from sealbook.model.work import Lane

        selection = Selection(source=sources)
        check_selection(self.settings.sources, selection)  # accounts that are not known yet are asked for
        if stages is None:
            self._check_stages(sources or self.settings.sources)
        control, ledger = self.settings.control, self.ledger
        heard = tell or (lambda _event, **_fields: None)
        return Loop(
            ledger,
            self.settings,
            RoundOpener(ledger, self.settings, partial(self.expectations, horizons=True)),
            Worker(
                ledger,
                stages or self.pipeline,
                self.settings.sources,
                control.lease,
                control.requests_per_day,
            ),
            accounts=self.accounts,
            batch=batch or BATCH,
            selection=selection,
            lanes=tuple(lanes or Lane),
            tell=heard,
            send_lineage=self.lineage_telling(lambda error: heard("lineage", error=error)),
        )

    def _check_stages(self, names: Iterable[str]) -> None:
        from sealbook.extract.checking import check_sources, log_remarks
        from sealbook.raw import RawStore

        sources = self.settings.sources
        parts = (Selection(source=name, queries=sources[name].queries) for name in names)
        log_remarks(check_sources(sources, parts))
        check_raw(self.settings, lambda: RawStore.open(self.settings.raw))
        self._check_columns(EVERYTHING)
        check_warehouse(self.settings, writing=True)

    def rollback(
        self,
        key: PartitionKey,
        run_id: str,
        *,
        actor: str,
        reason: str,
        dry_run: bool = False,
        irreplaceable: bool = False,
    ) -> RolledBack:
        """Give authority to another run of a partition, which must be accepted and still sealed (R-STATE-9).

        It holds, consumers follow at once, and another rollback undoes it. A dry run says what would be done.
        Irreplaceable if it is to an empty run of a day that the source does not give any more, and
        `irreplaceable` does not confirm it.
        """
        check_key(key)
        move, sealed = self.ledger.rollbacks.rollback, self.raw.runs(key)
        roll = partial(move, key, run_id, actor=actor, reason=reason, sealed=sealed)
        if not irreplaceable:
            check_rollback(self.horizons(), self.ledger.state(key), lambda: roll(dry_run=True))
        done = roll(dry_run=dry_run)
        if not dry_run:
            self.ledger.runs.end_runs([done.from_run_id])  # it may have waited to be loaded
            self.ledger.projector().catch_up()
        return done

    def catch_up(self) -> None:
        """Take the log into what runs and status are read from."""
        self.ledger.projector().catch_up()

    def sweep(self, selection: Selection = EVERYTHING) -> int:
        """Write down what is stale of the partitions that are chosen; return how many rows that changed."""
        self.catch_up()
        return self.ledger.sweeper.sweep(self.expectations(), selection)

    def close(self) -> None:
        """Close what was opened; the book opens it again when asked to."""
        self.__dict__.pop("pipeline", None)
        ledger: Ledger | None = self.__dict__.pop("ledger", None)
        if ledger is not None:
            ledger.close()
