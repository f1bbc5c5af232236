"""Run events: what happened in a run, each said once (R-EVT-1 to R-EVT-3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from sealbook.errors import InvalidInput
from sealbook.model.wire import (
    as_utc,
    dump_json,
    format_time,
    is_storable,
    json_object,
    json_value,
    load_json,
    parse_time,
)

MAX_TEXT = 512
"""Characters in a field that identifies an event; every database can index as much."""

MAX_SEQ = 2**63 - 1

NO_STEP = "RUN"
NO_ATTEMPT = "1"
"""What stands in the idempotency key for an event without a step, or without an attempt (R-EVT-3)."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOTHING: Mapping[str, object] = MappingProxyType({})


class EventType(StrEnum):
    """The event types that the fold knows. Others are legal, and change nothing (R-EVT-7)."""

    RUN_QUEUED = "RunQueued"
    RUN_STARTED = "RunStarted"
    RUN_PAUSED = "RunPaused"
    RUN_RESUMED = "RunResumed"
    RUN_COMPLETED = "RunCompleted"
    RUN_FAILED = "RunFailed"
    RUN_CANCELLED = "RunCancelled"
    STEP_STARTED = "StepStarted"
    STEP_COMPLETED = "StepCompleted"
    STEP_FAILED = "StepFailed"
    STEP_SKIPPED = "StepSkipped"
    STEP_CORRECTED = "StepCorrected"
    SIGNAL_ACCEPTED = "SignalAccepted"
    SIGNAL_REJECTED = "SignalRejected"
    PARTITION_SEALED = "PartitionSealed"
    PARTITION_FAILED = "PartitionFailed"
    PARTITION_JUDGED = "PartitionJudged"
    PARTITION_PUBLISHED = "PartitionPublished"
    PARTITION_HIDDEN = "PartitionHidden"
    PARTITION_REQUEUED = "PartitionRequeued"
    PARTITION_ROLLED_BACK = "PartitionRolledBack"
    PARTITION_CANCELLED = "PartitionCancelled"


def idempotency_key(
    run_id: str,
    step_id: str | None,
    logical_attempt_id: str | int | None,
    event_type: str,
    plan_version: str,
) -> str:
    """Return the key under which a run says an event once, as lower-case hex (R-EVT-3)."""
    return _digest(
        _token("run_id", run_id),
        None if step_id is None else _token("step_id", step_id),
        None if logical_attempt_id is None else _attempt("logical_attempt_id", logical_attempt_id),
        _token("event_type", event_type),
        _token("plan_version", plan_version),
    )


class DerivedIdentity(NamedTuple):
    """What follows from an event's other fields.

    `digest` tells it from every other event of all runs: it is the key, or that of its run and the key that
    the event brought from elsewhere.
    """

    idempotency_key: str
    digest: str
    event_id: str


@dataclass(frozen=True, kw_only=True)
class RunEvent:
    """One event of a run, checked when it is made: by `RunEvent.new`, or by `RunEvent.from_json`.

    `run_seq` and `persisted_at` are None until a store has the event. So may `emitted_at` be: the model
    reads no clock, and the store stamps it. `partition` is the text form of the partition that the event
    concerns. `event_data` is any JSON value, and a copy of its own; treat it as read-only.

    An event that brings an `idempotency_key` keeps it; else it gets the one of its fields (R-EVT-3). Its id
    follows from that, unless it brings one: an event appended again is the same event.
    """

    run_id: str
    event_type: str
    step_id: str | None = None
    logical_attempt_id: str | None = None
    plan_version: str = "1"
    event_data: Any = field(default_factory=dict, hash=False)
    emitted_at: datetime | None = None
    event_id: str = ""
    idempotency_key: str = ""
    run_seq: int | None = None
    persisted_at: datetime | None = None
    engine_attempt_id: str | None = None
    adapter_version: str | None = None
    engine_run_ref: object = field(default=None, hash=False)
    caused_by_signal_id: str | None = None
    parent_event_id: str | None = None
    partition: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    @classmethod
    def new(
        cls,
        run_id: str,
        event_type: str,
        step_id: str | None = None,
        logical_attempt_id: str | int | None = None,
        plan_version: str = "1",
        event_data: object = _NOTHING,
        emitted_at: datetime | None = None,
        *,
        engine_attempt_id: str | int | None = None,
        adapter_version: str | None = None,
        engine_run_ref: object = None,
        caused_by_signal_id: str | None = None,
        parent_event_id: str | None = None,
        event_id: str | None = None,
        partition: str | None = None,
    ) -> RunEvent:
        """Make an event that no store has yet; attempts may be numbers."""
        return cls(
            run_id=run_id,
            event_type=event_type,
            step_id=step_id,
            logical_attempt_id=cast("str | None", logical_attempt_id),
            plan_version=plan_version,
            event_data=event_data,
            emitted_at=emitted_at,
            engine_attempt_id=cast("str | None", engine_attempt_id),
            adapter_version=adapter_version,
            engine_run_ref=engine_run_ref,
            caused_by_signal_id=caused_by_signal_id,
            parent_event_id=parent_event_id,
            event_id="" if event_id is None else _uuid("event_id", event_id),
            partition=partition,
        )

    def __post_init__(self) -> None:
        fields = self.__dict__  # of a frozen class that is only being made
        for name, check in _CHECKS.items():
            value = fields[name]
            if value is not None or name in _REQUIRED:
                fields[name] = check(name, value)
        self._identify(fields)

    @classmethod
    def restored(cls, fields: dict[str, Any]) -> RunEvent:
        """Make an event of its fields as a store wrote them, unchecked: they were before it did.

        A store may leave out the key and the id where they are `derived`: they are empty then.
        """
        event = object.__new__(cls)
        # In one go: events have many fields, and runs many events.
        object.__setattr__(event, "__dict__", fields)
        event._identify(fields)
        return event

    def _identify(self, fields: dict[str, Any]) -> None:
        """Fill in the key and the id that the event did not bring."""
        if not fields["idempotency_key"] or not fields["event_id"]:
            derived = self.derived
            fields["idempotency_key"] = fields["idempotency_key"] or derived.idempotency_key
            fields["event_id"] = fields["event_id"] or derived.event_id

    @property
    def derived(self) -> DerivedIdentity:
        """What identifies an event of these fields that brings no key or id of its own."""
        own_key = _digest(
            self.run_id, self.step_id, self.logical_attempt_id, self.event_type, self.plan_version
        )
        # A key from elsewhere is one of its run's, and need be no digest.
        foreign = self.idempotency_key not in ("", own_key)
        digest = sha256(f"{self.run_id}|{self.idempotency_key}".encode()).hexdigest() if foreign else own_key
        return DerivedIdentity(own_key, digest, _event_id(digest))

    def stored(self, run_seq: int, persisted_at: datetime) -> RunEvent:
        """Return the event as a store has it: numbered, and emitted when persisted if it did not say."""
        return replace(
            self, run_seq=run_seq, persisted_at=persisted_at, emitted_at=self.emitted_at or persisted_at
        )

    def to_dict(self) -> dict[str, object]:
        """Return the event under the contract's camelCase names; what it does not have is left out."""
        members: dict[str, object] = {}
        for name, field_name in _FIELD_OF.items():
            value = getattr(self, field_name)
            if value is not None or field_name == "event_data":
                members[name] = format_time(value) if field_name in _TIMES else json_value(field_name, value)
        return members | json_object("extra", self.extra)

    def to_json(self) -> str:
        """Write the event as one line of JSON."""
        return dump_json(self.to_dict())

    @classmethod
    def from_dict(cls, members: Mapping[str, object]) -> RunEvent:
        """Read what `to_dict` gives; members that the contract does not know are kept in `extra`."""
        if not isinstance(members, Mapping):
            raise InvalidInput.of("event", members, "a JSON object")
        fields: dict[str, object] = {}
        extra: dict[str, object] = {}
        for name, value in members.items():
            field_name = _FIELD_OF.get(name)
            if field_name is None:
                extra[name] = value
            elif value is not None or field_name == "event_data":
                fields[field_name] = parse_time(field_name, value) if field_name in _TIMES else value
        for field_name in ("run_id", "event_type"):
            if field_name not in fields:
                raise InvalidInput.of(field_name, None, "text: an event has one")
        for field_name in ("event_id", "idempotency_key"):
            if fields.get(field_name) == "":
                raise InvalidInput.of(field_name, "", "a value, or no such member")
        return cls(**fields, extra=extra)  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, text: str | bytes) -> RunEvent:
        """Read what `to_json` gives."""
        return cls.from_dict(cast("Mapping[str, object]", load_json("event", text)))


_FIELD_OF = {
    "runId": "run_id",
    "runSeq": "run_seq",
    "eventId": "event_id",
    "stepId": "step_id",
    "engineAttemptId": "engine_attempt_id",
    "logicalAttemptId": "logical_attempt_id",
    "eventType": "event_type",
    "eventData": "event_data",
    "idempotencyKey": "idempotency_key",
    "planVersion": "plan_version",
    "emittedAt": "emitted_at",
    "persistedAt": "persisted_at",
    "adapterVersion": "adapter_version",
    "engineRunRef": "engine_run_ref",
    "causedBySignalId": "caused_by_signal_id",
    "parentEventId": "parent_event_id",
    "partition": "partition",
}
_TIMES = ("emitted_at", "persisted_at")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT or value.isspace():
        raise InvalidInput.of(name, value, f"text of 1 to {MAX_TEXT} characters")
    if not is_storable(value):
        raise InvalidInput.of(name, value, "text without NUL characters and lone surrogates")
    return str.__str__(value)  # of a subclass, such as RunId, the text alone: drivers look at the exact type


def _token(name: str, value: object) -> str:
    """Check a part of the idempotency key."""
    text = _text(name, value)
    if "|" in text:
        raise InvalidInput.of(name, value, "text without |, which parts the fields of the idempotency key")
    return text


def _attempt(name: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return _token(name, value)


def _uuid(name: str, value: object) -> str:
    text = value.lower() if isinstance(value, str) else ""
    if _UUID.fullmatch(text) is None:
        raise InvalidInput.of(name, value, "a UUID such as 7f2c1a90-4a53-5d1e-8c3b-9e0f6d2b1a77")
    return text


def _own_id(name: str, value: object) -> str:
    return "" if value == "" else _uuid(name, value)  # empty: to be derived


def _own_key(name: str, value: object) -> str:
    return "" if value == "" else _text(name, value)


def _run_seq(name: str, value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_SEQ:
        raise InvalidInput.of(name, value, f"a whole number from 1 to {MAX_SEQ}")
    return value


def _extra(name: str, value: object) -> Mapping[str, object]:
    extra = json_object(name, value)
    for member in extra.keys() & _FIELD_OF.keys():
        raise InvalidInput.of(name, member, f"no name that the contract gives to {_FIELD_OF[member]}")
    return extra


_REQUIRED = frozenset({"run_id", "event_type", "plan_version", "event_id", "idempotency_key", "extra"})
_CHECKS: Mapping[str, Callable[[str, object], object]] = {
    "run_id": _token,
    "event_type": _token,
    "step_id": _token,
    "logical_attempt_id": _attempt,
    "plan_version": _token,
    "event_data": json_value,
    "emitted_at": as_utc,
    "event_id": _own_id,
    "idempotency_key": _own_key,
    "run_seq": _run_seq,
    "persisted_at": as_utc,
    "engine_attempt_id": _attempt,
    "adapter_version": _text,
    "engine_run_ref": json_value,
    "caused_by_signal_id": _uuid,
    "parent_event_id": _uuid,
    "partition": _text,
    "extra": _extra,
}


def _digest(
    run_id: str, step_id: str | None, logical_attempt_id: str | None, event_type: str, plan_version: str
) -> str:
    step = NO_STEP if step_id is None else step_id
    attempt = NO_ATTEMPT if logical_attempt_id is None else logical_attempt_id
    return sha256(f"{run_id}|{step}|{attempt}|{event_type}|{plan_version}".encode()).hexdigest()


_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def _event_id(key: str) -> str:
    """Return an idempotency key's first digits as a UUID, of the version for hashes of one's own choice."""
    return f"{key[:8]}-{key[8:12]}-8{key[13:16]}-{_VARIANTS[key[16]]}{key[17:20]}-{key[20:32]}"
