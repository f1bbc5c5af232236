"""Run events: what happened in a run, each said once (R-EVT-1 to R-EVT-3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Any, cast

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


@dataclass(frozen=True, kw_only=True)
class RunEvent:
    """One event of a run. Made by `RunEvent.new`, `RunEvent.from_json`, or by a store from its row.

    `run_seq` and `persisted_at` are None until a store has the event. So may `emitted_at` be: the model
    reads no clock, and the store stamps it. `event_data` is a copy of its own; treat it as read-only.
    """

    run_id: str
    event_type: str
    step_id: str | None = None
    logical_attempt_id: str | None = None
    plan_version: str = "1"
    event_data: Mapping[str, object] = field(default_factory=dict, hash=False)
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
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    @classmethod
    def new(
        cls,
        run_id: str,
        event_type: str,
        step_id: str | None = None,
        logical_attempt_id: str | int | None = None,
        plan_version: str = "1",
        event_data: Mapping[str, object] = _NOTHING,
        emitted_at: datetime | None = None,
        *,
        engine_attempt_id: str | int | None = None,
        adapter_version: str | None = None,
        engine_run_ref: object = None,
        caused_by_signal_id: str | None = None,
        parent_event_id: str | None = None,
        event_id: str | None = None,
    ) -> RunEvent:
        """Make an event that no store has yet.

        Without an `event_id` the id follows from the idempotency key: an event told again is the same event.
        """
        fields = _fields(
            _token("run_id", run_id),
            _token("event_type", event_type),
            None if step_id is None else _token("step_id", step_id),
            None if logical_attempt_id is None else _attempt("logical_attempt_id", logical_attempt_id),
            _token("plan_version", plan_version),
            json_object("event_data", event_data),
            None if emitted_at is None else as_utc("emitted_at", emitted_at),
        )
        if event_id is not None:
            fields["event_id"] = _uuid("event_id", event_id)
        rare = (engine_attempt_id, adapter_version, engine_run_ref, caused_by_signal_id, parent_event_id)
        if rare != _NOTHING_RARE:
            for name, value in zip(_RARE, rare, strict=True):
                if value is not None:
                    fields[name] = _CHECKS[name](name, value)
        return cls.restored(fields)

    def __post_init__(self) -> None:
        said = {name: getattr(self, name) for name in _CHECKS}
        self.__dict__.update(_sound(said, self.idempotency_key))

    @classmethod
    def trusted(
        cls,
        run_id: str,
        event_type: EventType,
        step_id: str,
        logical_attempt_id: int,
        event_data: Mapping[str, object],
        emitted_at: datetime | None = None,
    ) -> RunEvent:
        """Make the event that `new` makes, of parts that were checked before: thousands are said at once.

        The data is not copied, and its texts must be plain ones, of no subclass of `str`.
        """
        return cls.restored(
            _fields(
                _plain(run_id),
                _plain(event_type),
                step_id,
                str(logical_attempt_id),
                "1",
                event_data,
                None if emitted_at is None else as_utc("emitted_at", emitted_at),
            )
        )

    @classmethod
    def restored(cls, fields: dict[str, object]) -> RunEvent:
        """Make an event of all its fields, which were checked before and are now its own."""
        event = object.__new__(cls)
        # In one go: events have many fields, and runs many events.
        object.__setattr__(event, "__dict__", fields)
        return event

    def stored(self, run_seq: int, persisted_at: datetime) -> RunEvent:
        """Return the event as a store has it: numbered, and emitted when persisted if it did not say."""
        return replace(
            self, run_seq=run_seq, persisted_at=persisted_at, emitted_at=self.emitted_at or persisted_at
        )

    def to_dict(self) -> dict[str, object]:
        """Return the event under the contract's camelCase names; what is None is left out."""
        members: dict[str, object] = {}
        for name, field_name in _FIELD_OF.items():
            value = getattr(self, field_name)
            if value is not None:
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
            elif value is not None:
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
}
_TIMES = ("emitted_at", "persisted_at")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT or value.isspace():
        raise InvalidInput.of(name, value, f"text of 1 to {MAX_TEXT} characters")
    if not is_storable(value):
        raise InvalidInput.of(name, value, "text without NUL characters and lone surrogates")
    return _plain(value)


_plain = str.__str__  # of a subclass, such as RunId, the text alone: drivers look at the exact type


def _token(name: str, value: object) -> str:
    """Check a part of the idempotency key."""
    if (  # as nearly all are, which is told at once
        type(value) is str
        and value.isascii()
        and value.isprintable()
        and 0 < len(value) <= MAX_TEXT
        and not value.isspace()
    ):
        text = value
    else:
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


def _run_seq(name: str, value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_SEQ:
        raise InvalidInput.of(name, value, f"a whole number from 1 to {MAX_SEQ}")
    return value


def _extra(name: str, value: object) -> Mapping[str, object]:
    extra = json_object(name, value)
    for member in extra.keys() & _FIELD_OF.keys():
        raise InvalidInput.of(name, member, f"no name that the contract gives to {_FIELD_OF[member]}")
    return extra


_RARE = ("engine_attempt_id", "adapter_version", "engine_run_ref", "caused_by_signal_id", "parent_event_id")
_NOTHING_RARE = (None,) * len(_RARE)
_REQUIRED = frozenset({"run_id", "event_type", "plan_version", "event_data", "event_id", "extra"})
_CHECKS: Mapping[str, Callable[[str, object], object]] = {
    "run_id": _token,
    "event_type": _token,
    "step_id": _token,
    "logical_attempt_id": _attempt,
    "plan_version": _token,
    "event_data": json_object,
    "emitted_at": as_utc,
    "event_id": _own_id,
    "run_seq": _run_seq,
    "persisted_at": as_utc,
    "engine_attempt_id": _attempt,
    "adapter_version": _text,
    "engine_run_ref": json_value,
    "caused_by_signal_id": _uuid,
    "parent_event_id": _uuid,
    "extra": _extra,
}


def _sound(said: Mapping[str, object], key: str) -> dict[str, object]:
    """Check what is said of an event, and return all its fields, with those that follow from others."""
    fields: dict[str, Any] = dict(said)
    for name, value in said.items():
        if value is not None or name in _REQUIRED:
            fields[name] = _CHECKS[name](name, value)
    fields["idempotency_key"] = own_key = _digest(
        fields["run_id"],
        fields["step_id"],
        fields["logical_attempt_id"],
        fields["event_type"],
        fields["plan_version"],
    )
    if key not in ("", own_key):
        raise InvalidInput.of("idempotency_key", key, f"that of the event's fields, {own_key}")
    if fields["event_id"] == "":
        fields["event_id"] = _event_id(own_key)
    return fields


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


def _fields(
    run_id: str,
    event_type: str,
    step_id: str | None,
    logical_attempt_id: str | None,
    plan_version: str,
    event_data: Mapping[str, object],
    emitted_at: datetime | None,
) -> dict[str, object]:
    """Return all the fields of an event of which no more is said, with those that follow from others."""
    key = _digest(run_id, step_id, logical_attempt_id, event_type, plan_version)
    return {
        "run_id": run_id,
        "event_type": event_type,
        "step_id": step_id,
        "logical_attempt_id": logical_attempt_id,
        "plan_version": plan_version,
        "event_data": event_data,
        "emitted_at": emitted_at,
        "event_id": _event_id(key),
        "idempotency_key": key,
        "run_seq": None,
        "persisted_at": None,
        "engine_attempt_id": None,
        "adapter_version": None,
        "engine_run_ref": None,
        "caused_by_signal_id": None,
        "parent_event_id": None,
        "extra": {},
    }
