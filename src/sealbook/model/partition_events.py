"""The facts about partitions that the log keeps, typed both ways: `to_event` writes, `read_fact` reads.

Status, control, and a ledger that is built again are all folds of these (R-EVT-11). The event of a fact names
its partition in a field of its own, and in its step id, as in `load/google_ads/1234567890/campaign_daily/…`,
so that each partition has idempotency keys of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, Self, get_args, get_type_hints

from sealbook.errors import InvalidInput, QuotaScope
from sealbook.model.artifacts import Staged
from sealbook.model.events import EventType, RunEvent
from sealbook.model.failures import ErrorClass, LastFailure
from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.state import Rollback, Status
from sealbook.model.verdict import Outcome, Verdict
from sealbook.model.wire import as_utc, format_time, parse_time


class Stage(StrEnum):
    """The steps of a run, and `control` for what an operator or the control loop does to its partitions."""

    EXTRACT = "extract"
    VALIDATE = "validate"
    LOAD = "load"
    CONTROL = "control"


class Counted(StrEnum):
    """How a run's counters have one of its partitions, until a later fact `replaces` that."""

    FAILED = "failed"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFact(ABC):
    """Something that happened to a partition in a run.

    `attempt` tells facts of one kind about one partition apart within its run; each kind says what it is.
    Kinds that can follow one another say what the fact `replaces`, so that each partition counts once.
    """

    event_type: ClassVar[EventType]

    key: PartitionKey
    run_id: RunId
    attempt: str | None = None

    @property
    @abstractmethod
    def stage(self) -> Stage:
        """The step that the fact belongs to."""

    def to_event(self, emitted_at: datetime | None = None) -> RunEvent:
        """Write the fact as the event that the log keeps."""
        data = {}
        for field, member, codec in _MEMBERS[type(self)]:
            value = getattr(self, field)
            if value is not None:
                data[member] = codec.write(value)
        partition = str(self.key)
        return RunEvent.new(
            self.run_id,
            self.event_type,
            f"{self.stage}/{partition}",
            self.attempt,
            event_data=data,
            emitted_at=emitted_at,
            partition=partition,
        )

    @classmethod
    def from_event(cls, event: RunEvent) -> Self:
        """Read the fact that an event of this kind tells; InvalidInput names what is wrong with it."""
        if event.partition is None:
            raise InvalidInput.of(f"partition of {event.event_type}", None, "the text form of a key")
        given = event.event_data if isinstance(event.event_data, Mapping) else {}
        values: dict[str, Any] = {}
        for field, member, codec in _MEMBERS[cls]:
            place = f"{event.event_type}.{member}"
            values[field] = None if given.get(member) is None else codec.read(place, given[member])
            if values[field] is None and not codec.optional:
                raise InvalidInput.of(place, None, "a value")
        return cls(
            key=PartitionKey.parse(event.partition),
            run_id=RunId(event.run_id),
            attempt=event.logical_attempt_id,
            **values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSealed(PartitionFact):
    """A raw partition is sealed, in the words of its metadata. A run seals a partition once: no attempt."""

    event_type = EventType.PARTITION_SEALED
    stage = Stage.EXTRACT

    schema_version: str
    record_count: int
    payload_bytes: int
    payload_sha256: str
    query_hash: str
    extracted_at: datetime
    replaces: Counted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFailed(PartitionFact):
    """A partition could not be extracted, or not be staged; the attempt is that of the step.

    `retry_after` is the wait in seconds that the source asked for, if it did; `quota_scope` whose quota is
    used up, where that is why, and the account's where it does not say. `days` is how many days failed
    together, where that were several that one request asked for: nobody knows which of them is to blame.
    """

    event_type = EventType.PARTITION_FAILED

    failed_stage: Stage
    error_class: ErrorClass
    error: str
    retry_after: float | None = None
    quota_scope: QuotaScope | None = None
    days: int | None = None
    replaces: Counted | None = None

    @property
    def stage(self) -> Stage:
        """The step that failed."""
        return self.failed_stage

    def seen(self, at: datetime) -> LastFailure:
        """Return the failure as it is shown, with the time at which the log heard of it."""
        return LastFailure(self.run_id, self.failed_stage, at, self.error_class, self.error, self.retry_after)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionJudged(PartitionFact):
    """A run was judged; the attempt is the partition's `attempt_count` by then. The checks stay with it."""

    event_type = EventType.PARTITION_JUDGED
    stage = Stage.VALIDATE

    outcome: Outcome
    validator_version: str
    contract_hash: str | None = None
    schema_version: str | None = None
    record_count: int | None = None
    error: str | None = None
    revalidation_id: str | None = None
    replaces: Counted | None = None

    @classmethod
    def of(cls, verdict: Verdict, attempt: int, before: str | None = None) -> PartitionJudged:
        """Return the fact that a verdict is given; `before` is the outcome of the run's last judgement."""
        return cls(
            key=verdict.key,
            run_id=verdict.run_id,
            attempt=str(attempt),
            outcome=verdict.outcome,
            validator_version=verdict.validator_version,
            contract_hash=verdict.contract_hash,
            schema_version=verdict.schema_version,
            record_count=verdict.record_count,
            error=verdict.error_message,
            revalidation_id=verdict.revalidation_id,
            replaces=None if before is None else Counted(before),
        )

    @property
    def verdict(self) -> Verdict:
        """The verdict, without its checks."""
        return Verdict(
            key=self.key,
            run_id=self.run_id,
            outcome=self.outcome,
            schema_version=self.schema_version,
            record_count=self.record_count,
            error_message=self.error,
            validator_version=self.validator_version,
            checks=(),
            revalidation_id=self.revalidation_id,
            contract_hash=self.contract_hash,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPublished(PartitionFact):
    """The pointer of a partition now names this run; the attempt is the warehouse's version since then.

    Where its artifact lies is not said again: the load record has it for ever. `files_run_id` is the run with
    the same payload whose files it shares, if it does.
    """

    event_type = EventType.PARTITION_PUBLISHED
    stage = Stage.LOAD

    schema_version: str
    record_count: int
    bytes: int
    digest: str
    parts: int | None = None
    files_run_id: RunId | None = None
    replaced_run_id: RunId | None = None
    replaces: Counted | None = None

    @classmethod
    def of(
        cls, staged: Staged, version: int, replaced_run_id: RunId | None, *, again: bool
    ) -> PartitionPublished:
        """Return the fact that an artifact is published, in place of that of another run if there was one.

        `again` says that it was published before.
        """
        return cls(
            key=staged.key,
            run_id=staged.artifact.run_id,
            attempt=str(version),
            schema_version=staged.artifact.schema_version,
            record_count=staged.record_count,
            bytes=staged.bytes,
            digest=staged.digest,
            parts=staged.parts,
            files_run_id=staged.files_run_id,
            replaced_run_id=replaced_run_id,
            replaces=Counted.PUBLISHED if again else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHidden(PartitionFact):
    """The pointer to this run was ended, as the state is `status`; the attempt is the version since then."""

    event_type = EventType.PARTITION_HIDDEN
    stage = Stage.LOAD

    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRequeued(PartitionFact):
    """A failed partition waits again; the run is that of its last attempt, the attempt the override's id."""

    event_type = EventType.PARTITION_REQUEUED
    stage = Stage.CONTROL

    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRolledBack(PartitionFact):
    """An operator gave authority to this run; the attempt is the override's id.

    `newest_run_id` is the newest run that the partition had by then; older events lack it, and hold nothing.
    """

    event_type = EventType.PARTITION_ROLLED_BACK
    stage = Stage.CONTROL

    from_run_id: RunId
    schema_version: str
    record_count: int
    actor: str
    reason: str
    newest_run_id: RunId | None = None

    @property
    def move(self) -> Rollback:
        """The move that it tells of."""
        return Rollback(self.run_id, self.schema_version, self.record_count, self.newest_run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCancelled(PartitionFact):
    """What a run had yet to do of a partition will not be done, because somebody stopped the run."""

    event_type = EventType.PARTITION_CANCELLED
    stage = Stage.CONTROL

    actor: str
    reason: str


FACTS: tuple[type[PartitionFact], ...] = (
    PartitionSealed,
    PartitionFailed,
    PartitionJudged,
    PartitionPublished,
    PartitionHidden,
    PartitionRequeued,
    PartitionRolledBack,
    PartitionCancelled,
)
FACT_TYPES = tuple(kind.event_type.value for kind in FACTS)
"""The types of the events that tell facts."""

_BY_TYPE: dict[str, type[PartitionFact]] = {kind.event_type: kind for kind in FACTS}


def read_fact(event: RunEvent) -> PartitionFact | None:
    """Return the fact that an event tells of a partition; None if it tells of none."""
    kind = _BY_TYPE.get(event.event_type)
    return None if kind is None else kind.from_event(event)


class _Codec(NamedTuple):
    """How a value becomes a member of an event's data, and back."""

    write: Callable[..., object]
    read: Callable[[str, object], object]
    optional: bool


def _members(kind: type[PartitionFact]) -> tuple[tuple[str, str, _Codec], ...]:
    """Return the fields of a kind that its event's data has, each with the name and the form it has there."""
    hints = get_type_hints(kind)
    shared = {field.name for field in fields(PartitionFact)}
    return tuple(
        (field.name, _camel_case(field.name), _codec(hints[field.name]))
        for field in fields(kind)
        if field.name not in shared
    )


def _codec(hint: object) -> _Codec:
    choices = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    [plain] = (choice for choice in choices if choice is not NoneType)
    optional = NoneType in choices
    if plain is datetime:
        return _Codec(lambda moment: format_time(as_utc("time", moment)), parse_time, optional)
    if isinstance(plain, type) and issubclass(plain, StrEnum):
        return _Codec(str.__str__, _word_reader(plain), optional)
    if plain is RunId:
        return _Codec(str.__str__, lambda _, value: RunId(value), optional)  # type: ignore[arg-type]  # it checks
    accepted = (int, float) if plain is float else plain
    return _Codec(lambda value: value, _kind_reader(accepted), optional)


def _word_reader(words: type[StrEnum]) -> Callable[[str, object], object]:
    def read(place: str, value: object) -> object:
        if value not in list(words):
            raise InvalidInput.of(place, value, f"one of {', '.join(words)}")
        return words(str(value))

    return read


def _kind_reader(kind: object) -> Callable[[str, object], object]:
    def read(place: str, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, kind):  # type: ignore[arg-type]  # a class, or some
            raise InvalidInput.of(place, value, f"a value of type {kind}")
        return value

    return read


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


_MEMBERS = {kind: _members(kind) for kind in FACTS}
