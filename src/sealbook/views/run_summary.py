"""A run through all stages, summed up: counts by stage, and what was not published, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from sealbook.extract.results import BY_HAND, Ending, Extracted
from sealbook.ledger.events import RunStoreReader
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import PartitionKey, RunId, RunSnapshot, RunStatus
from sealbook.model.partition_events import PartitionJudged, Stage, read_fact
from sealbook.model.verdict import Outcome
from sealbook.pipeline.outcome import RunOutcome, StageBatch
from sealbook.validate.results import Judged, NotJudged, Result
from sealbook.views.reasons import Cause, Reason, group_reasons

_ORDER = list(Stage)


@dataclass(frozen=True, slots=True)
class NotPublished:
    """A partition that a run set out to do and did not publish: how far it came, how that ended, and why."""

    key: PartitionKey
    stage: Stage
    ending: str
    reason: str
    kind: str | None = None
    """What it has in common with others, if not the reason: the checks that rejected it."""


@dataclass
class RunSummary:
    """What came of a run so far; counts are those of this go at it, the rest is about the whole run."""

    outcome: RunOutcome
    not_published: dict[PartitionKey, NotPublished] = field(default_factory=dict)
    published: int = 0

    @classmethod
    def begin(cls, store: RunStoreReader, run_id: RunId) -> RunSummary:
        """Begin with what an earlier go at the run rejected, which is not judged again."""
        rejected = {each.key: each for each in _rejected(store, run_id)}
        summary = cls(RunOutcome.of(run_id), rejected)
        summary.read(store)
        return summary

    def add(self, batch: StageBatch) -> None:
        """Take in the results of a stage."""
        self.outcome.add(batch)
        for result in batch.results:
            missed = _missed(result)
            if missed is not None:
                self.not_published[missed.key] = missed

    def read(self, store: RunStoreReader) -> None:
        """Read from the log how the run stands."""
        snapshot = store.get_snapshot(self.outcome.run_id) or RunSnapshot.pending(self.outcome.run_id)
        self.outcome.status = snapshot.status
        self.published = snapshot.counters.partitions_published

    @property
    def run_id(self) -> RunId:
        """The run."""
        return self.outcome.run_id

    @property
    def status(self) -> RunStatus:
        """How the run stands."""
        return self.outcome.status

    @property
    def worst_first(self) -> list[NotPublished]:
        """What is not published; that which came least far first."""
        return sorted(self.not_published.values(), key=lambda each: (_ORDER.index(each.stage), each.key))

    @property
    def reasons(self) -> list[tuple[Stage, Reason]]:
        """The same by reason, each once; within a stage, that of most first."""
        return [
            (stage, reason)
            for stage in _ORDER
            for reason in group_reasons(
                Cause(each.key, each.ending, each.reason, each.kind)
                for each in self.worst_first
                if each.stage is stage
            )
        ]

    @property
    def counts(self) -> dict[Stage, dict[str, int]]:
        """How many partitions ended how, by stage."""
        judged = self.outcome.validate
        return {
            Stage.EXTRACT: {ending.value: self.outcome.extract.endings[ending] for ending in BY_HAND},
            Stage.VALIDATE: {
                "accepted": judged.accepted,
                "rejected": judged.rejected,
                "not_judged": len(judged.not_judged),
            },
            Stage.LOAD: {ending.value: self.outcome.load.endings[ending] for ending in LoadEnding},
        }

    def to_dict(self) -> dict[str, object]:
        """Return the summary as one object."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "counts": self.counts,
            "reasons": [{"stage": stage, **reason.to_dict()} for stage, reason in self.reasons],
            "not_published": [_flat(each) for each in self.worst_first],
        }


def _flat(missed: NotPublished) -> dict[str, object]:
    fields = asdict(missed)
    del fields["kind"]
    return {**fields.pop("key"), **fields}


def _missed(result: Extracted | Result | Loaded) -> NotPublished | None:
    """Return what a result says of a partition that will not be published, if it does."""
    match result:
        case Extracted(ending=Ending.FAILED):
            return NotPublished(result.key, Stage.EXTRACT, "failed", result.error_message or "")
        case NotJudged():
            return NotPublished(result.key, Stage.VALIDATE, "not judged", result.reason)
        case Judged(verdict) if not verdict.accepted:
            return NotPublished(
                verdict.key,
                Stage.VALIDATE,
                "rejected",
                verdict.error_message or "",
                kind=", ".join(verdict.failed),
            )
        case Loaded(ending=LoadEnding.FAILED | LoadEnding.SKIPPED):
            return NotPublished(result.key, Stage.LOAD, result.ending, result.reason or "")
    return None


def _rejected(store: RunStoreReader, run_id: RunId) -> Iterator[NotPublished]:
    """Yield what the last judgements of a run rejected."""
    last: dict[PartitionKey, PartitionJudged] = {}
    after = 0
    while page := store.fetch_events(run_id, after):
        for event in page:
            fact = read_fact(event)
            if isinstance(fact, PartitionJudged):
                last[fact.key] = fact
        after = page[-1].run_seq or after
    for fact in last.values():
        if fact.outcome is Outcome.REJECTED:
            yield NotPublished(fact.key, Stage.VALIDATE, "rejected", fact.error or "")
