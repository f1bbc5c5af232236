"""What happened to a partition, in order: its runs, attempts, pointers, and what was done by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from sealbook.ledger.events.port import FeedEvent
from sealbook.ledger.reader import LedgerReader
from sealbook.ledger.states.audit import Action, Override
from sealbook.model import Attempt, Outcome, PartitionKey, RunId
from sealbook.model.partition_events import (
    PartitionCancelled,
    PartitionFact,
    PartitionFailed,
    PartitionHidden,
    PartitionJudged,
    PartitionPublished,
    PartitionRequeued,
    PartitionRolledBack,
    PartitionSealed,
    read_fact,
)
from sealbook.model.publication import Pointer
from sealbook.model.words import counted
from sealbook.views.evidence import failed_names

MOST = 200
"""How many moments are shown at most: the latest."""

_NOT_IN_THE_LOG = (
    Action.REPROCESS, Action.BACKFILL, Action.MARK, Action.CLEAR, Action.PAUSE, Action.RESUME,
)  # fmt: skip
"""What is done by hand that is no fact of a run; the others are told by the log itself."""

_DONE = {
    Action.REPROCESS: "another run was asked for",
    Action.BACKFILL: "a backfill asked for it",
    Action.MARK: "it was given up",
    Action.CLEAR: "it was taken up again",
    Action.PAUSE: "it was paused",
    Action.RESUME: "it went on",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a partition: when, what (`kind`, `text`), in which run, by whom and why."""

    at: datetime
    kind: str
    text: str
    run_id: RunId | None = None
    attempt: int | None = None
    """The number of the judgement, where it is one."""
    actor: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The latest moments of a partition, the oldest first, and how many came before them."""

    moments: tuple[Moment, ...]
    earlier: int = 0

    def discreet(self, attempts: Iterable[Attempt]) -> Timeline:
        """Return it without the values that judgements quote."""
        checks = {each.attempt: each.checks for each in attempts if each.outcome is Outcome.REJECTED}
        return replace(
            self,
            moments=tuple(
                replace(each, text=failed_names(checks[each.attempt])) if each.attempt in checks else each
                for each in self.moments
            ),
        )

    def to_dict(self) -> dict[str, object]:
        """Return it as one object."""
        return asdict(self)


def timeline_of(ledger: LedgerReader, key: PartitionKey) -> Timeline:
    """Return what happened to a partition, as far as the ledger remembers."""
    moments = gather(
        ledger.partition_log.feed_of(key),
        ledger.attempts(key),
        ledger.pointers.history(key),
        ledger.override_log.done_to(key, _NOT_IN_THE_LOG),
    )
    return Timeline(tuple(moments[-MOST:]), max(len(moments) - MOST, 0))


def gather(
    events: Sequence[FeedEvent],
    attempts: Iterable[Attempt],
    pointers: Iterable[Pointer],
    overrides: Iterable[Override],
) -> list[Moment]:
    """Put in order what the log tells, what is kept of runs that were retired, and what was asked for.

    Judgements and publications outlive the events that told of them.
    """
    facts = [(each.event.persisted_at, read_fact(each.event)) for each in events]
    told = [(at, fact) for at, fact in facts if at is not None and fact is not None]
    judged = {fact.attempt for _, fact in told if isinstance(fact, PartitionJudged)}
    published = {fact.attempt for _, fact in told if isinstance(fact, PartitionPublished)}
    moments = [
        *(_told(at, fact) for at, fact in told),
        *(_judged(each) for each in attempts if str(each.attempt) not in judged),
        *(_published(each) for each in pointers if str(each.valid_from) not in published),
        *map(_done, overrides),
    ]
    return sorted(moments, key=lambda each: each.at)  # of one time, in the order of commits


def _told(at: datetime, fact: PartitionFact) -> Moment:
    kind, text = _words(fact)
    moment = Moment(at, kind, text, fact.run_id)
    match fact:
        case PartitionJudged():
            return replace(moment, attempt=int(fact.attempt or 0))
        case PartitionRequeued() | PartitionRolledBack() | PartitionCancelled():
            return replace(moment, actor=fact.actor, reason=fact.reason)
    return moment


def _words(fact: PartitionFact) -> tuple[str, str]:
    """Return the kind of a moment, and what happened, in words."""
    text = ""
    match fact:
        case PartitionSealed():
            text = f"{counted(fact.record_count, 'row')} of schema_version {fact.schema_version}"
        case PartitionFailed():
            error = fact.error.removeprefix(f"{fact.key}: ")
            text = f"in {fact.failed_stage} ({fact.error_class}): {error}"
        case PartitionJudged():
            again = fact.revalidation_id is not None
            return fact.outcome, _judgement(fact.outcome, fact.record_count, fact.error, again=again)
        case PartitionPublished():
            instead = "" if fact.replaced_run_id is None else f", in place of run {fact.replaced_run_id}"
            text = f"{counted(fact.record_count, 'row')}{instead}"
        case PartitionHidden():
            text = f"withdrawn from consumers, as it is {fact.status}"
        case PartitionRequeued():
            text = "pending again, to be judged or fetched"
        case PartitionRolledBack():
            text = f"from run {fact.from_run_id}"
        case PartitionCancelled():
            text = "its run was cancelled"
    return _KINDS[type(fact)], text


_KINDS: dict[type[PartitionFact], str] = {
    PartitionSealed: "sealed",
    PartitionFailed: "failed",
    PartitionPublished: "published",
    PartitionHidden: "hidden",
    PartitionRequeued: "requeued",
    PartitionRolledBack: "rolled_back",
    PartitionCancelled: "cancelled",
}


def _judged(attempt: Attempt) -> Moment:
    again = attempt.revalidation_id is not None
    text = _judgement(attempt.outcome, attempt.record_count, attempt.error_message, again=again)
    return Moment(attempt.judged_at, attempt.outcome, text, attempt.run_id, attempt.attempt)


def _judgement(outcome: Outcome, record_count: int | None, error: str | None, *, again: bool) -> str:
    found = error if outcome is Outcome.REJECTED else counted(record_count or 0, "row")
    return f"judged again: {found}" if again else str(found)


def _published(pointer: Pointer) -> Moment:
    return Moment(
        pointer.published_at, "published", f"schema_version {pointer.schema_version}", pointer.run_id
    )


def _done(override: Override) -> Moment:
    scope = (override.filter or {}).get("scope")
    text = _DONE[override.action] + ("" if scope is None else f", with all of {scope}")
    return Moment(
        override.at,
        override.action,
        text,
        override.run_id,
        actor=override.actor,
        reason=override.reason,
    )
