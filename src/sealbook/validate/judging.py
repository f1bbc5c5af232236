"""One go of the validator: jobs are run one after the other, and verdicts written while they run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sealbook.errors import Conflict, Corrupt, SealbookError, Transient, UnknownOutcome
from sealbook.ledger.reader import LedgerReader
from sealbook.ledger.states.verdicts import VerdictWriter
from sealbook.model import PartitionState, Verdict
from sealbook.model.claims import LOST, Fences
from sealbook.model.contract import Contract, Query
from sealbook.model.horizons import NO_HORIZONS, Horizons
from sealbook.model.versions import version_on
from sealbook.raw import RawReader
from sealbook.rows.problems import CorruptMetadata, CorruptPayload, Defect, OtherVersion, Unreadable
from sealbook.spark.garbage import existing_objects_frozen
from sealbook.spark.session import is_running
from sealbook.validate.bins import Binning
from sealbook.validate.contracts import rule_columns
from sealbook.validate.findings import Content, Evidence
from sealbook.validate.history import AcceptedCounts, InRunOrder
from sealbook.validate.irreplaceable import Irreplaceables
from sealbook.validate.job import Job, run_job
from sealbook.validate.plan import Candidate, ValidatePlan
from sealbook.validate.results import Judged, NotJudged, Result
from sealbook.validate.verdicts import ContractJudge, reject_corrupt_metadata

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH = 1_000
_LONGEST_WAIT_SECONDS = 1.0
_MOST_FAILED_JOBS = 40
"""Enough to find two or three runs among many thousands; if there are more, it is not the runs."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a job found of a run, and by which contract that is judged."""

    judge: ContractJudge
    evidence: Evidence
    finding: Content | CorruptPayload


class _GivenUp(NamedTuple):
    """What a job that Spark gave up has not told of, and why it was given up."""

    ordinals: Sequence[int]
    reason: str


_Outcome = _Found | CorruptMetadata | NotJudged
_Group = tuple[str, str, str]
"""Source, query_name and schema_version: what is judged in one job."""


class Judging:
    """Carries out one plan."""

    def __init__(
        self,
        reader: LedgerReader,
        verdicts: VerdictWriter,
        raw: RawReader,
        queries: Mapping[tuple[str, str], Query],
        spark: SparkSession,
        binning: Binning,
        plan: ValidatePlan,
        under: Fences | None = None,
        horizons: Horizons = NO_HORIZONS,
    ) -> None:
        self._reader = reader
        self._verdicts = verdicts
        self._raw = raw
        self._queries = queries
        self._spark = spark
        self._binning = binning
        self._plan = plan
        self._under = under
        self._candidates = plan.candidates
        self._groups: dict[_Group, list[int]] = defaultdict(list)
        self._rule_columns: dict[tuple[str, str], Mapping[str, tuple[str, ...]]] = {}
        self._horizons = horizons
        self._irreplaceables = Irreplaceables(horizons, {})
        self._counts: AcceptedCounts | None = None
        self._waiting: list[tuple[Verdict, int, int]] = []
        self._flushed = time.monotonic()

    @property
    def queries_concerned(self) -> list[Query]:
        """The configured queries that candidates are of."""
        names = {(candidate.key.source, candidate.key.query_name) for candidate in self._candidates}
        return [self._queries[name] for name in sorted(names & self._queries.keys())]

    def check_rules(self) -> None:
        """Let Spark analyse the rules of the queries concerned; ConfigError if one is wrong."""
        for query in self.queries_concerned:
            self._rule_columns[query.source, query.name] = rule_columns(self._spark, query)

    def batches(self) -> Generator[list[Result], None, None]:
        """Yield what comes of the candidates, once the ledger has it; their rules have been checked."""
        self._counts = self._accepted_counts()
        self._irreplaceables = Irreplaceables.load(self._reader, self._horizons, self._candidates)
        in_order: InRunOrder[_Outcome] = InRunOrder(self._candidates)
        with existing_objects_frozen():
            for outcomes in self._outcomes():
                not_judged: list[Result] = [
                    result
                    for ordinal, outcome in outcomes
                    for each, its in in_order.pass_on(ordinal, outcome)
                    for result in self._conclude(self._candidates[each], its)
                ]
                if not_judged:
                    yield not_judged
                if self._is_due():
                    yield from self._flush()
            yield from self._flush()

    def _outcomes(self) -> Iterator[list[tuple[int, _Outcome]]]:
        """Yield outcomes by ordinal, as jobs tell of them."""
        yield list(self._group())
        while self._groups:
            group = next(iter(self._groups))
            ordinals = self._groups.pop(group)
            source, query_name, schema_version = group
            contract = self._queries[source, query_name].contracts.get(schema_version)
            if contract is not None:
                yield from self._run(group, contract, ordinals)
            else:
                reason = f"{source}/{query_name} has no contract for schema_version {schema_version!r}"
                yield [
                    (ordinal, self._not_judged(ordinal, reason, is_misconfigured=True))
                    for ordinal in ordinals
                ]

    def _group(self) -> Iterator[tuple[int, _Outcome]]:
        """Put each candidate into the group of its expected schema_version; yield those that have none."""
        for ordinal, candidate in enumerate(self._candidates):
            key = candidate.key
            query = self._queries.get((key.source, key.query_name))
            if query is None:
                reason = f"there is no query {key.source}/{key.query_name} in the configuration"
                yield ordinal, self._not_judged(ordinal, reason, is_misconfigured=True)
                continue
            version = candidate.schema_version or version_on(query.spans, key.logical_date)
            if self._binning.is_sliced(candidate):
                # Its slices are all read by one contract: better ask the seal first.
                try:
                    version = self._raw.metadata(key, candidate.run_id).schema_version
                except Corrupt as error:
                    yield ordinal, CorruptMetadata(str(error))
                    continue
                except SealbookError as error:
                    yield ordinal, self._not_judged(ordinal, str(error))
                    continue
            self._groups[key.source, key.query_name, version].append(ordinal)

    def _run(
        self, group: _Group, contract: Contract, ordinals: Sequence[int]
    ) -> Iterator[list[tuple[int, _Outcome]]]:
        """Judge runs by a contract; if Spark gives up, halving finds the run that makes it (R-VER-3)."""
        waiting, failed_jobs = [ordinals], 0
        while waiting:
            given_up = yield from self._run_job(group, contract, waiting.pop())
            if given_up is None:
                continue
            failed_jobs += 1
            some, reason = given_up.ordinals, given_up.reason
            if len(some) > 1 and failed_jobs < _MOST_FAILED_JOBS and is_running(self._spark):
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
            else:
                yield [(ordinal, self._not_judged(ordinal, reason)) for ordinal in some]

    def _run_job(
        self, group: _Group, contract: Contract, ordinals: Sequence[int]
    ) -> Generator[list[tuple[int, _Outcome]], None, _GivenUp | None]:
        """Run one job; whole payloads are told of as soon as their task ends, sliced ones when all have."""
        sliced = {ordinal for ordinal in ordinals if self._binning.is_sliced(self._candidates[ordinal])}
        job = Job(
            contract,
            self._rule_columns[group[:2]][contract.schema_version],
            self._binning.bins([(each, self._candidates[each]) for each in ordinals if each not in sliced]),
            self._binning.slices((each, self._candidates[each]) for each in sorted(sliced)),
            self._binning.block_bytes,
        )
        judge = ContractJudge(contract)
        waiting = dict.fromkeys(ordinals)
        evidence: dict[int, Evidence] = defaultdict(Evidence)

        def closed(some: set[int]) -> Iterator[tuple[int, _Outcome]]:
            for ordinal in sorted(some & evidence.keys()):
                del waiting[ordinal]
                yield from self._outcome(group, judge, ordinal, evidence.pop(ordinal))

        try:
            for reports in run_job(self._spark, self._raw, job):
                for report in reports:
                    evidence[report.ordinal].add(report)
                yield list(closed({report.ordinal for report in reports} - sliced))
            yield list(closed(sliced))
        except Transient as error:
            return _GivenUp(list(waiting), str(error))
        return _GivenUp(list(waiting), "Spark ended the job without a word of it") if waiting else None

    def _outcome(
        self, group: _Group, judge: ContractJudge, ordinal: int, evidence: Evidence
    ) -> Iterator[tuple[int, _Outcome]]:
        """Yield what the evidence of a run comes to, unless another job has to look at it."""
        match evidence.finding():
            case OtherVersion(schema_version=schema_version):
                source, query_name, _ = group
                self._groups[source, query_name, schema_version].append(ordinal)
            case Unreadable(reason=reason) | Defect(reason=reason):
                yield ordinal, self._not_judged(ordinal, reason)
            case CorruptMetadata() as finding:
                yield ordinal, finding
            case finding:
                yield ordinal, _Found(judge, evidence, finding)

    def _conclude(self, candidate: Candidate, outcome: _Outcome) -> Iterator[NotJudged]:
        """Turn an outcome into a verdict that waits for the ledger; what cannot be one is yielded."""
        match outcome:
            case NotJudged():
                yield outcome
            case CorruptMetadata():
                yield from self._give(reject_corrupt_metadata(candidate, outcome), 0, 0)
            case _Found(evidence=evidence, finding=finding):
                counts = self._counts
                history = () if counts is None else counts.before(candidate.key, candidate.run_id)
                try:
                    verdict = outcome.judge.judge(candidate, evidence, finding, history)
                except Exception as error:  # noqa: BLE001 - whatever it is, it concerns this run alone (R-VER-3)
                    yield NotJudged(candidate.key, candidate.run_id, Defect.of(error).reason)
                    return
                rows = finding.lines if isinstance(finding, Content) else 0
                yield from self._give(verdict, rows, candidate.payload_bytes)

    def _give(self, verdict: Verdict, rows: int, size: int) -> Iterator[NotJudged]:
        """Have a verdict wait for the ledger; one that would have to be confirmed is yielded as not given."""
        withheld = self._irreplaceables.why_withheld(verdict)
        if withheld is not None:
            yield NotJudged(verdict.key, verdict.run_id, withheld, is_irreplaceable=True)
            return
        if self._counts is not None and verdict.record_count is not None:
            self._counts.add(verdict.key, verdict.run_id, verdict.record_count)
        self._waiting.append((verdict, rows, size))

    def _is_due(self) -> bool:
        return len(self._waiting) >= _BATCH or time.monotonic() - self._flushed > _LONGEST_WAIT_SECONDS

    def _flush(self) -> Iterator[list[Result]]:
        """Write the verdicts that wait, and yield what came of them."""
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), _BATCH):
            batch = waiting[start : start + _BATCH]
            states = self._written([verdict for verdict, _, _ in batch])
            yield [
                NotJudged(verdict.key, verdict.run_id, str(state))
                if isinstance(state, Conflict)
                else Judged(verdict, state, rows, size)
                for (verdict, rows, size), state in zip(batch, states, strict=True)
            ]
        self._flushed = time.monotonic()

    def _written(self, verdicts: Sequence[Verdict]) -> Sequence[PartitionState | Conflict | None]:
        if self._plan.dry_run:
            return [None] * len(verdicts)
        try:
            return self._judged(verdicts)
        except Conflict as conflict:
            if len(verdicts) == 1:
                return [conflict]
            # Somebody else has judged one of these otherwise: that is no reason to hold up the rest.
            return [state for verdict in verdicts for state in self._written([verdict])]

    def _judged(self, verdicts: Sequence[Verdict]) -> Sequence[PartitionState | Conflict]:
        try:
            return self._tell(verdicts)
        except UnknownOutcome:
            return self._tell(verdicts)  # what was written is recognised

    def _tell(self, verdicts: Sequence[Verdict]) -> Sequence[PartitionState | Conflict]:
        if self._under is None:
            return self._verdicts.judge(verdicts)
        judged = self._verdicts.judge_under(verdicts, self._under)
        lost, states = {*judged.lost}, iter(judged.states)
        return [Conflict(LOST) if verdict.key in lost else next(states) for verdict in verdicts]

    def _accepted_counts(self) -> AcceptedCounts | None:
        """Read the counts of earlier runs, if any contract compares with them."""
        compared = any(
            contract.row_count.min_ratio is not None or contract.row_count.max_ratio is not None
            for query in self.queries_concerned
            for contract in query.contracts.values()
        )
        if not compared:
            return None
        return AcceptedCounts.load(self._reader, {candidate.key for candidate in self._candidates})

    def _not_judged(self, ordinal: int, reason: str, *, is_misconfigured: bool = False) -> NotJudged:
        candidate = self._candidates[ordinal]
        return NotJudged(candidate.key, candidate.run_id, reason, is_misconfigured)
