"""A run through the stages: what commands, the control loop and programs call alike."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing

from sealbook.errors import IllegalMove, InvalidInput
from sealbook.extract.allowance import NO_ALLOWANCES, Allowance
from sealbook.extract.extraction import Extraction
from sealbook.extract.plan import ExtractPlan
from sealbook.extract.results import Ending, Extracted
from sealbook.ledger import Ledger
from sealbook.load.loader import Loader, LoadPlan
from sealbook.load.results import Loaded
from sealbook.model import PartitionKey, RunId
from sealbook.model.claims import Claim, Fences, ranges_of
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.progress import OnProgress, no_progress
from sealbook.model.selection import Selection
from sealbook.model.work import WorkKind
from sealbook.pipeline.found_seals import untold_seals
from sealbook.pipeline.outcome import StageBatch
from sealbook.pipeline.steps import Steps, reason, steps_of
from sealbook.raw import RawMetadata, RawReader
from sealbook.validate.plan import ValidatePlan
from sealbook.validate.results import Judged, Result
from sealbook.validate.validator import Validator

OnStage = Callable[[Stage, int], OnProgress]
"""Hears that a stage begins with so many partitions, and returns who hears of its progress."""


class Pipeline:
    """The stages of a book, and the log that says what became of each run in them.

    Each stage takes a plan, which its own part makes: `extraction.plan`, `validator.plan`, `loader.plan`.
    """

    def __init__(
        self,
        ledger: Ledger,
        raw: Callable[[], RawReader],
        extraction: Extraction,
        validator: Validator,
        loader: Loader,
        start_java: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._raw = raw
        self._start_java = start_java
        self.extraction = extraction
        self.validator = validator
        self.loader = loader

    def open_run(self) -> RunId:
        """Open a run, which the stages are then given."""
        return self._ledger.open_run()

    def extract(
        self, plan: ExtractPlan, run_id: RunId, on_progress: OnProgress = no_progress
    ) -> Generator[list[Extracted], None, None]:
        """Fetch and seal what is planned as part of a run, and yield results as they come."""
        return self._extract(plan, run_id, on_progress, self.extraction.begin)

    def _extract(
        self,
        plan: ExtractPlan,
        run_id: RunId,
        on_progress: OnProgress,
        start: Callable[[], None],
        allowances: Mapping[str, Allowance] = NO_ALLOWANCES,
        under: Fences | None = None,
    ) -> Generator[list[Extracted], None, None]:
        def begin() -> None:
            try:
                start()
            except Exception as error:
                self._ledger.runs.fail_to_begin(run_id, reason(error))
                raise

        with steps_of(self._ledger, Stage.EXTRACT, [run_id], planned=plan.parts) as steps:
            if run_id not in steps.attempts:
                raise IllegalMove(
                    f"run {run_id} has ended: nothing more is fetched as part of it",
                    remedy="Extract as a new run: leave out --run-id.",
                )
            resumes = steps.attempts[run_id] > 1
            with closing(
                self.extraction.run(
                    plan, run_id, on_progress, resumes=resumes, begin=begin, allowances=allowances
                )
            ) as batches:
                for batch in batches:
                    attempt = steps.attempt(run_id)
                    facts = (result.fact(attempt) for result in batch if result.ending is not Ending.LEFT)
                    lost = {*steps.record(facts, under)}
                    yield [result.lost() if result.key in lost else result for result in batch]

    def validate(
        self, plan: ValidatePlan, on_progress: OnProgress = no_progress, under: Fences | None = None
    ) -> Generator[list[Result], None, None]:
        """Judge what is planned, and yield results as they come; a dry run leaves no trace."""
        if plan.dry_run:
            yield from self.validator.run(plan, on_progress)
            return
        runs = {candidate.run_id for candidate in plan.candidates}
        with (
            steps_of(self._ledger, Stage.VALIDATE, runs, concerned=plan.runs) as steps,
            closing(self.validator.run(plan, on_progress, under)) as batches,
        ):
            self._tell_found(steps, ((each.key, each.run_id) for each in plan.candidates))
            for batch in batches:
                steps.record()
                yield batch

    def load(
        self, plan: LoadPlan, on_progress: OnProgress = no_progress, under: Fences | None = None
    ) -> Generator[list[Loaded], None, None]:
        """Publish what is planned, and yield results as they come."""
        with (
            steps_of(self._ledger, Stage.LOAD, plan.runs) as steps,
            closing(self.loader.run(plan, on_progress, under)) as batches,
        ):
            found = ((item.key, item.run_id) for item in plan.items if item.run_id is not None)
            self._tell_found(steps, found)
            for batch in batches:
                failed = (result for result in batch if result.error_class is not None)
                steps.record((_failure(result, steps) for result in failed), under)
                yield batch

    def run(
        self, plan: ExtractPlan, run_id: RunId, on_stage: OnStage = lambda _stage, _total: no_progress
    ) -> Generator[StageBatch, None, None]:
        """Take what is planned the whole way as one run, and yield the results of each stage as they come.

        What extraction sealed is judged, and what was accepted is loaded, without listing anything again. A
        run that was stopped or killed goes on where it was.
        """
        seals: list[RawMetadata] = []
        for extracted in self._extract(plan, run_id, on_stage(Stage.EXTRACT, len(plan)), self._start):
            seals += [result.seal for result in extracted if result.seal is not None]
            yield StageBatch(Stage.EXTRACT, extracted)
        validation = self.validator.plan_sealed(seals)
        for judged in self.validate(validation, on_stage(Stage.VALIDATE, len(validation))):
            yield StageBatch(Stage.VALIDATE, judged)
        loading = self.loader.plan(Selection(runs=[run_id]))
        for loaded in self.load(loading, on_stage(Stage.LOAD, len(loading))):
            yield StageBatch(Stage.LOAD, loaded)

    def work(
        self,
        claims: Iterable[Claim],
        run_id: RunId | None,
        under: Fences,
        allowances: Mapping[str, Allowance] = NO_ALLOWANCES,
    ) -> Generator[StageBatch, None, None]:
        """Do what was claimed, and yield the results of each stage as they come.

        What is to be fetched goes all the way as part of the run; what is to be judged or loaded is of runs
        of its own. `under` are the fences of what is still held: what others have by now is left alone from
        then on (R-CTL-4).
        """
        by_kind: dict[WorkKind, list[Claim]] = {kind: [] for kind in WorkKind}
        for claim in claims:
            by_kind[claim.kind].append(claim)
        seals: list[RawMetadata] = []
        if by_kind[WorkKind.FETCH]:
            if run_id is None:
                raise InvalidInput.of("run_id", run_id, "a run, for what is to be fetched")
            ranges = ranges_of(by_kind[WorkKind.FETCH])
            plan = ExtractPlan.of_ranges([claim.key for claim in own] for own in ranges)
            for extracted in self._extract(plan, run_id, no_progress, self._start, allowances, under):
                seals += [result.seal for result in extracted if result.seal is not None]
                yield StageBatch(Stage.EXTRACT, extracted)
        again = [(claim.key, claim.run_id) for claim in by_kind[WorkKind.JUDGE] if claim.run_id is not None]
        validation = self.validator.plan_sealed(seal for seal in seals if seal.key in under).joined(
            self.validator.plan_named((key, run) for key, run in again if key in under)
        )
        to_load = {claim.key for claim in by_kind[WorkKind.LOAD]}
        for judged in self.validate(validation, under=under):
            to_load.update(result.verdict.key for result in judged if isinstance(result, Judged))
            yield StageBatch(Stage.VALIDATE, judged)
        if left := [key for key in sorted(to_load) if key in under]:
            loading = self.loader.plan(Selection(keys=left))
            for loaded in self.load(loading, under=under):
                yield StageBatch(Stage.LOAD, loaded)

    def _start(self) -> None:
        """Start what all stages need, at once."""
        self._start_java()
        _import_stages()
        self.extraction.begin()

    def _tell_found(self, steps: Steps, runs: Iterable[tuple[PartitionKey, RunId]]) -> None:
        """Tell the log of seals that a stage has found, where nobody has."""
        steps.record(untold_seals(self._ledger.reader, self._raw, runs))


def _import_stages() -> None:
    """Import what the stages would import one after the other: Java takes longer to start."""
    import sealbook.extract.job
    import sealbook.load.loading
    import sealbook.validate.judging  # noqa: F401


def _failure(result: Loaded, steps: Steps) -> PartitionFailed:
    if result.run_id is None or result.error_class is None or result.reason is None:
        raise AssertionError(f"{result.key} failed to load, but nothing says why")
    return PartitionFailed(
        key=result.key,
        run_id=result.run_id,
        attempt=steps.attempt(result.run_id),
        failed_stage=Stage.LOAD,
        error_class=result.error_class,
        error=result.reason,
    )
