"""What the events of a run add up to (R-EVT-6). The fold that makes it is in `run_fold`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import cast

from sealbook.errors import InvalidInput
from sealbook.model.members import Members
from sealbook.model.wire import dump_json, format_time, json_value, load_json


class RunStatus(StrEnum):
    """Where a run stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def final(self) -> bool:
        """Whether no event can change it any more."""
        return self in (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class StepStatus(StrEnum):
    """Where an attempt of a step stands. PENDING is an attempt that no event has spoken of."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """One attempt of a step: `(stepId, logicalAttemptId)`.

    `decided_by` is the id of the event that recorded the outcome in force, `overruled` the ids of those that
    corrections have replaced, the oldest first. Only a success has artifacts, and only a failure an error.
    """

    logical_attempt_id: str
    status: StepStatus
    started_at: datetime | None = None
    completed_at: datetime | None = None
    error: str | None = None
    artifacts: tuple[object, ...] = field(default=(), hash=False)
    decided_by: str | None = None
    overruled: tuple[str, ...] = ()

    @property
    def corrected_by(self) -> str | None:
        """The id of the correction in force, if the outcome was corrected."""
        return self.decided_by if self.overruled else None

    def to_dict(self) -> dict[str, object]:
        """Return the attempt under camelCase names; what is None is left out."""
        return _without_none(
            logicalAttemptId=self.logical_attempt_id,
            status=self.status.value,
            startedAt=_time(self.started_at),
            completedAt=_time(self.completed_at),
            error=self.error,
            artifacts=json_value("artifacts", self.artifacts),
            decidedBy=self.decided_by,
            overruled=list(self.overruled),
        )

    @classmethod
    def from_members(cls, read: Members) -> StepAttempt:
        """Read what `to_dict` gives."""
        return cls(
            logical_attempt_id=read.text("logicalAttemptId"),
            status=read.word("status", StepStatus),
            started_at=read.time_or_none("startedAt"),
            completed_at=read.time_or_none("completedAt"),
            error=read.text_or_none("error"),
            artifacts=read.values("artifacts"),
            decided_by=read.text_or_none("decidedBy"),
            overruled=read.texts("overruled"),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a run with all its attempts, in the order in which events first spoke of them."""

    step_id: str
    attempts: tuple[StepAttempt, ...]

    def __post_init__(self) -> None:
        if not self.attempts:
            raise InvalidInput.of(f"attempts of step {self.step_id}", self.attempts, "at least one attempt")

    @property
    def latest(self) -> StepAttempt:
        """The newest attempt."""
        return self.attempts[-1]

    @property
    def status(self) -> StepStatus:
        """The status of the newest attempt."""
        return self.latest.status

    def to_dict(self) -> dict[str, object]:
        """Return the step under camelCase names."""
        return {"stepId": self.step_id, "attempts": [attempt.to_dict() for attempt in self.attempts]}

    @classmethod
    def from_members(cls, read: Members) -> Step:
        """Read what `to_dict` gives."""
        attempts = tuple(StepAttempt.from_members(attempt) for attempt in read.objects("attempts"))
        return cls(read.text("stepId"), attempts)


@dataclass(frozen=True, slots=True)
class Counters:
    """How the partitions of a run stand: sealed, failed, accepted or rejected, published, each counted once.

    A failure that a later go made good counts no more, and of several judgements the last one counts. What is
    hidden, requeued, rolled back or a signal counts as often as it happened.
    """

    partitions_sealed: int = 0
    partitions_failed: int = 0
    partitions_accepted: int = 0
    partitions_rejected: int = 0
    partitions_published: int = 0
    partitions_hidden: int = 0
    partitions_requeued: int = 0
    partitions_rolled_back: int = 0
    partitions_cancelled: int = 0
    records_sealed: int = 0
    bytes_sealed: int = 0
    records_published: int = 0
    bytes_published: int = 0
    signals_accepted: int = 0
    signals_rejected: int = 0

    def by_name(self) -> dict[str, int]:
        """Return the counts by the names of their fields."""
        return {name: getattr(self, name) for name in _COUNTERS}

    def to_dict(self) -> dict[str, object]:
        """Return the counts by camelCase names."""
        return {member: getattr(self, name) for name, member in _COUNTERS.items()}

    @classmethod
    def from_members(cls, read: Members) -> Counters:
        """Read what `to_dict` gives."""
        return cls(**{name: read.count(member) for name, member in _COUNTERS.items()})


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """Everything that the events of a run add up to, as far as `last_event_seq`.

    `inconsistent` holds the ids of the events that no legal move allowed; the fold skipped them.
    Treat `steps` as read-only.
    """

    run_id: str
    status: RunStatus = RunStatus.PENDING
    last_event_seq: int = 0
    steps: Mapping[str, Step] = field(default_factory=dict, hash=False)
    run_artifacts: tuple[object, ...] = field(default=(), hash=False)
    counters: Counters = Counters()
    started_at: datetime | None = None
    completed_at: datetime | None = None
    error: str | None = None
    inconsistent: tuple[str, ...] = ()

    @classmethod
    def pending(cls, run_id: str) -> RunSnapshot:
        """Return the snapshot of a run that has no event."""
        return cls(run_id)

    @property
    def artifacts(self) -> tuple[object, ...]:
        """What the run produced: the artifacts of successful step attempts, then those of the run itself."""
        attempts = (attempt for step in self.steps.values() for attempt in step.attempts)
        return (*(artifact for attempt in attempts for artifact in attempt.artifacts), *self.run_artifacts)

    @property
    def duration(self) -> timedelta | None:
        """From start to end; None while either is missing."""
        if self.started_at is None or self.completed_at is None:
            return None
        # The two times may come from machines whose clocks disagree.
        return max(self.completed_at - self.started_at, timedelta(0))

    @property
    def hash(self) -> str:
        """A stable digest of the whole snapshot."""
        return sha256(self.to_json().encode()).hexdigest()

    def next_attempt(self, step_id: str) -> int:
        """Return the number of the attempt that a step would start next; attempts are numbered from 1."""
        step = self.steps.get(step_id)
        return 1 if step is None else len(step.attempts) + 1

    def to_dict(self) -> dict[str, object]:
        """Return the snapshot under camelCase names; what is None is left out."""
        return _without_none(
            runId=self.run_id,
            status=self.status.value,
            lastEventSeq=self.last_event_seq,
            steps=[step.to_dict() for step in self.steps.values()],
            runArtifacts=json_value("run_artifacts", self.run_artifacts),
            counters=self.counters.to_dict(),
            startedAt=_time(self.started_at),
            completedAt=_time(self.completed_at),
            error=self.error,
            inconsistent=list(self.inconsistent),
        )

    def to_json(self) -> str:
        """Write the snapshot as one line of JSON, equal for equal snapshots."""
        return dump_json(self.to_dict())

    @classmethod
    def from_dict(cls, members: Mapping[str, object]) -> RunSnapshot:
        """Read what `to_dict` gives; any other shape is refused, for the log can give the snapshot again."""
        read = Members("snapshot", members)
        steps = [Step.from_members(step) for step in read.objects("steps")]
        return cls(
            run_id=read.text("runId"),
            status=read.word("status", RunStatus),
            last_event_seq=read.count("lastEventSeq"),
            steps={step.step_id: step for step in steps},
            run_artifacts=read.values("runArtifacts"),
            counters=Counters.from_members(read.object("counters")),
            started_at=read.time_or_none("startedAt"),
            completed_at=read.time_or_none("completedAt"),
            error=read.text_or_none("error"),
            inconsistent=read.texts("inconsistent"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> RunSnapshot:
        """Read what `to_json` gives."""
        return cls.from_dict(cast("Mapping[str, object]", load_json("snapshot", text)))


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _time(time: datetime | None) -> str | None:
    return None if time is None else format_time(time)


def _without_none(**members: object) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


_COUNTERS = {counter.name: _camel_case(counter.name) for counter in fields(Counters)}
