"""The fold of a run's events into its snapshot: pure, and the same in any batches (R-EVT-6, R-EVT-7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from sealbook.errors import InvalidInput
from sealbook.model.events import NO_ATTEMPT, EventType, RunEvent
from sealbook.model.partition_events import Counted
from sealbook.model.run_snapshot import Counters, RunSnapshot, RunStatus, Step, StepAttempt, StepStatus
from sealbook.model.verdict import Outcome
from sealbook.model.wire import dump_json

RUN_MOVES: Mapping[str, Mapping[RunStatus, RunStatus]] = {
    EventType.RUN_QUEUED: {RunStatus.PENDING: RunStatus.PENDING},
    EventType.RUN_STARTED: {RunStatus.PENDING: RunStatus.RUNNING},
    EventType.RUN_PAUSED: {RunStatus.RUNNING: RunStatus.PAUSED},
    EventType.RUN_RESUMED: {RunStatus.PAUSED: RunStatus.RUNNING},
    EventType.RUN_COMPLETED: {RunStatus.RUNNING: RunStatus.COMPLETED},
    EventType.RUN_FAILED: {
        RunStatus.PENDING: RunStatus.FAILED,
        RunStatus.RUNNING: RunStatus.FAILED,
        RunStatus.PAUSED: RunStatus.FAILED,
    },
    EventType.RUN_CANCELLED: {
        RunStatus.PENDING: RunStatus.CANCELLED,
        RunStatus.RUNNING: RunStatus.CANCELLED,
        RunStatus.PAUSED: RunStatus.CANCELLED,
    },
}
"""For each event of a run: from which status it leads, and to which."""


@dataclass(frozen=True, slots=True)
class StepMove:
    """Where an event leads an attempt of a step, from which status, and in which statuses of the run."""

    from_status: StepStatus
    to_status: StepStatus
    while_run: frozenset[RunStatus]


_RUNNING = frozenset({RunStatus.RUNNING})
# Work in hand may end while the run is paused; nothing new may start.
_RUNNING_OR_PAUSED = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})

STEP_MOVES: Mapping[str, StepMove] = {
    EventType.STEP_STARTED: StepMove(StepStatus.PENDING, StepStatus.RUNNING, _RUNNING),
    EventType.STEP_COMPLETED: StepMove(StepStatus.RUNNING, StepStatus.SUCCESS, _RUNNING_OR_PAUSED),
    EventType.STEP_FAILED: StepMove(StepStatus.RUNNING, StepStatus.FAILED, _RUNNING_OR_PAUSED),
    EventType.STEP_SKIPPED: StepMove(StepStatus.PENDING, StepStatus.SKIPPED, _RUNNING_OR_PAUSED),
}
"""The moves of a step's attempt. A correction is apart: it replaces an outcome, whatever the run's status."""

OUTCOMES = frozenset({StepStatus.SUCCESS, StepStatus.FAILED, StepStatus.SKIPPED})
"""The statuses that a correction may replace, and that it may give."""


def fold(snapshot: RunSnapshot, event: RunEvent) -> RunSnapshot:
    """Return the snapshot after one more stored event; one that it already holds changes nothing."""
    return fold_all(snapshot, (event,))


def fold_all(snapshot: RunSnapshot, events: Iterable[RunEvent]) -> RunSnapshot:
    """Return the snapshot after more stored events, the same as folding them one by one but fast."""
    folding = _Folding(snapshot)
    for event in events:
        folding.take(event)
    return folding.result()


class _Folding:
    """A snapshot on its way to the next: it changes in place, so that an event in a batch costs no copy."""

    __slots__ = (
        "_attempts", "_before", "_counts", "completed_at", "error", "inconsistent", "last_event_seq",
        "run_artifacts", "started_at", "status",
    )  # fmt: skip

    def __init__(self, snapshot: RunSnapshot) -> None:
        self._before = snapshot
        self.status = snapshot.status
        self.last_event_seq = snapshot.last_event_seq
        self.run_artifacts = snapshot.run_artifacts
        self.started_at = snapshot.started_at
        self.completed_at = snapshot.completed_at
        self.error = snapshot.error
        self.inconsistent: list[str] = []
        # Opened on first write: a batch seldom touches all there is.
        self._attempts: dict[str, dict[str, StepAttempt]] = {}
        self._counts: dict[str, int] | None = None

    def take(self, event: RunEvent) -> None:
        """Fold one event."""
        seq = event.run_seq
        if seq is None:
            raise InvalidInput.of(
                "run_seq", seq, "the number that a store gave; only stored events are folded"
            )
        if event.run_id != self._before.run_id:
            raise InvalidInput.of("run_id", event.run_id, f"the snapshot's run, {self._before.run_id}")
        if seq <= self.last_event_seq:
            return
        self.last_event_seq = seq
        folded = _FOLDS.get(event.event_type)
        if folded is not None and not folded(self, event):
            self.inconsistent.append(event.event_id)

    def result(self) -> RunSnapshot:
        """Return the snapshot reached."""
        before = self._before
        if self.last_event_seq == before.last_event_seq:
            return before
        touched = {step_id: Step(step_id, tuple(by_id.values())) for step_id, by_id in self._attempts.items()}
        return RunSnapshot(
            run_id=before.run_id,
            status=self.status,
            last_event_seq=self.last_event_seq,
            steps={**before.steps, **touched} if touched else before.steps,
            run_artifacts=self.run_artifacts,
            counters=before.counters if self._counts is None else Counters(**self._counts),
            started_at=self.started_at,
            completed_at=self.completed_at,
            error=self.error,
            inconsistent=(*before.inconsistent, *self.inconsistent),
        )

    def count(self, name: str, by: int = 1) -> None:
        """Raise a counter, or lower it; of a run that was retired, what it counted before is not known."""
        if self._counts is None:
            self._counts = self._before.counters.by_name()
        self._counts[name] = max(0, self._counts[name] + by)

    def attempt(self, event: RunEvent) -> StepAttempt | None:
        """Return the attempt that a step event speaks of; None when it names no step."""
        if event.step_id is None:
            return None
        attempt_id = event.logical_attempt_id or NO_ATTEMPT
        known = self._known_attempts(event.step_id).get(attempt_id)
        return known or StepAttempt(attempt_id, StepStatus.PENDING)

    def put_attempt(self, step_id: str, attempt: StepAttempt) -> None:
        """Record what became of an attempt."""
        self._known_attempts(step_id)
        self._attempts.setdefault(step_id, {})[attempt.logical_attempt_id] = attempt

    def _known_attempts(self, step_id: str) -> Mapping[str, StepAttempt]:
        if step_id not in self._attempts:
            step = self._before.steps.get(step_id)
            if step is None:
                return {}  # a step takes its place with its first legal event, not when it is looked for
            self._attempts[step_id] = {attempt.logical_attempt_id: attempt for attempt in step.attempts}
        return self._attempts[step_id]


def _fold_run_move(folding: _Folding, event: RunEvent) -> bool:
    to_status = RUN_MOVES[event.event_type].get(folding.status)
    if to_status is None:
        return False
    folding.status = to_status
    if event.event_type == EventType.RUN_STARTED:
        folding.started_at = event.emitted_at
    if to_status.final:
        folding.completed_at = event.emitted_at
        if to_status is RunStatus.COMPLETED:
            folding.run_artifacts = _artifacts(event)
        else:
            folding.error = _error(event)
    return True


def _fold_step_move(folding: _Folding, event: RunEvent) -> bool:
    move = STEP_MOVES[event.event_type]
    attempt = folding.attempt(event)
    if attempt is None or attempt.status is not move.from_status or folding.status not in move.while_run:
        return False
    if move.to_status in OUTCOMES:
        attempt = _with_outcome(attempt, move.to_status, event, completed_at=event.emitted_at)
    else:
        attempt = replace(attempt, status=move.to_status, started_at=event.emitted_at)
    folding.put_attempt(cast("str", event.step_id), attempt)
    return True


def _fold_correction(folding: _Folding, event: RunEvent) -> bool:
    attempt = folding.attempt(event)
    status = _member(event, "status")
    if (
        attempt is None
        or attempt.decided_by is None
        # Only the outcome in force can be corrected: of two corrections of one event, the first stands.
        or _member(event, "correctsEventId") != attempt.decided_by
        or not isinstance(status, str)
        or status not in OUTCOMES
    ):
        return False
    overruled = (*attempt.overruled, attempt.decided_by)
    corrected = _with_outcome(attempt, StepStatus(status), event, overruled=overruled)
    folding.put_attempt(cast("str", event.step_id), corrected)
    return True


def _with_outcome(attempt: StepAttempt, status: StepStatus, event: RunEvent, **changes: Any) -> StepAttempt:
    return replace(
        attempt,
        status=status,
        error=_error(event) if status is StepStatus.FAILED else None,
        artifacts=_artifacts(event) if status is StepStatus.SUCCESS else (),
        decided_by=event.event_id,
        **changes,
    )


def _fold_judgement(folding: _Folding, event: RunEvent) -> bool:
    outcome = _member(event, "outcome")
    if outcome not in list(Outcome):
        return False
    return _count_partition(folding, event, cast("str", outcome))


def _counting(counter: str) -> _Fold:
    """Return the fold of what is counted as often as it happens."""

    def count(folding: _Folding, _event: RunEvent) -> bool:
        folding.count(counter)
        return True

    return count


def _standing(standing: str, **amounts: str) -> _Fold:
    """Return the fold of a fact about where a partition stands, with amounts from the event's data."""

    def count(folding: _Folding, event: RunEvent) -> bool:
        return _count_partition(folding, event, standing, **amounts)

    return count


def _count_partition(folding: _Folding, event: RunEvent, standing: str, **amounts: str) -> bool:
    """Count a partition, and the amounts that it adds, where it stands now; no more where it stood before."""
    found = {counter: _member(event, member, 0) for counter, member in amounts.items()}
    replaced = _member(event, "replaces")
    if any(type(amount) is not int or amount < 0 for amount in found.values()):
        return False
    if replaced is not None and replaced not in list(Counted):
        return False
    if replaced != standing:
        folding.count(f"partitions_{standing}")
        for counter, amount in found.items():
            folding.count(counter, cast("int", amount))
        if replaced is not None:
            folding.count(f"partitions_{replaced}", -1)
    return True


def _member(event: RunEvent, name: str, default: object = None) -> object:
    """Return a member of the event's data, which need not be an object."""
    return event.event_data.get(name, default) if isinstance(event.event_data, Mapping) else default


def _artifacts(event: RunEvent) -> tuple[object, ...]:
    """Return what the event lists; a single one may stand without a list."""
    artifacts = _member(event, "artifacts")
    if artifacts is None:
        return ()
    return tuple(artifacts) if isinstance(artifacts, list) else (artifacts,)


def _error(event: RunEvent) -> str | None:
    error = _member(event, "error")
    return error if error is None or isinstance(error, str) else dump_json(error)


_Fold = Callable[[_Folding, RunEvent], bool]

# Each returns whether the event was legal, and changes nothing when it was not. Signals and Partition… events
# are facts that no status of the run forbids: a partition may be judged or hidden long after its run ended.
_FOLDS: Mapping[str, _Fold] = {
    **dict.fromkeys(RUN_MOVES, _fold_run_move),
    **dict.fromkeys(STEP_MOVES, _fold_step_move),
    EventType.STEP_CORRECTED: _fold_correction,
    EventType.SIGNAL_ACCEPTED: _counting("signals_accepted"),
    EventType.SIGNAL_REJECTED: _counting("signals_rejected"),
    EventType.PARTITION_SEALED: _standing(
        "sealed", records_sealed="recordCount", bytes_sealed="payloadBytes"
    ),
    EventType.PARTITION_FAILED: _standing("failed"),
    EventType.PARTITION_JUDGED: _fold_judgement,
    EventType.PARTITION_PUBLISHED: _standing(
        "published", records_published="recordCount", bytes_published="bytes"
    ),
    EventType.PARTITION_HIDDEN: _counting("partitions_hidden"),
    EventType.PARTITION_REQUEUED: _counting("partitions_requeued"),
    EventType.PARTITION_ROLLED_BACK: _counting("partitions_rolled_back"),
    EventType.PARTITION_CANCELLED: _counting("partitions_cancelled"),
}
