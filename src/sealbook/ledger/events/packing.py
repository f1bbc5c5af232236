"""Event data as few bytes, and back: any JSON value, with what is long in a fact made short.

A value becomes MessagePack, in which members that facts have go by number, a sha256 is its bytes and a time
is a timestamp. Text that spells the run and the partition out, as the location of an artifact does, refers to
them: the row has them already.

What `pack` gives for a value is never changed, for by that an event that is appended again is told from
another. A better form is another module, and a migration of the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

import msgspec

from sealbook.model.wire import dump_json, format_time

_NAMES = (
    "actor",
    "bytes",
    "contractHash",
    "digest",
    "error",
    "errorClass",
    "extractedAt",
    "failedStage",
    "fromRunId",
    "location",
    "outcome",
    "parts",
    "payloadBytes",
    "payloadSha256",
    "queryHash",
    "reason",
    "recordCount",
    "replacedRunId",
    "retryAfter",
    "revalidationId",
    "schemaVersion",
    "status",
    "validatorVersion",
)
_NUMBERS: dict[str, str | int] = {name: number for number, name in enumerate(_NAMES)}

_SPELT = b"\xc1"  # the one byte that MessagePack never begins with: JSON follows
_MARK = "\0"  # which no text of an event has: a reference follows
_PARTED = re.compile("([/=])")
_SHA256_DIGITS = 64
_MOST_REFERENCES = 10  # so that each is one digit

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def pack(value: object, run_id: str = "", partition: str | None = None) -> bytes:
    """Return a JSON value as bytes, the same for the same value of the same run and partition."""
    try:
        return _encode(_short(value, run_id, partition))
    except OverflowError:  # MessagePack has no whole number of more than 64 bits
        return _SPELT + dump_json(value).encode()


def unpack(data: bytes, run_id: str = "", partition: str | None = None) -> object:
    """Return what was packed."""
    if data[:1] == _SPELT:
        return msgspec.json.decode(data[1:])
    return _long(_decode(data), run_id, partition)


def _short(value: object, run_id: str, partition: str | None) -> object:
    if isinstance(value, str):
        return _short_text(value, run_id, partition)
    if isinstance(value, dict):
        return {
            _NUMBERS.get(name, name): member if type(member) is int else _short(member, run_id, partition)
            for name, member in sorted(value.items())
        }
    if isinstance(value, list):
        return [_short(item, run_id, partition) for item in value]
    return value


def _short_text(text: str, run_id: str, partition: str | None) -> object:
    if len(text) == _SHA256_DIGITS:
        digest = _from_hex(text)
        if digest is not None:
            return digest
    if text[10:11] == "T" and text[-1] == "Z":
        time = _from_time(text)
        if time is not None:
            return time
    if run_id and run_id in text:
        marks = {name: f"{_MARK}{place}" for place, name in enumerate(_references(run_id, partition)) if name}
        return _renamed(text, lambda part: marks.get(part, part))
    return text


def _long(value: object, run_id: str, partition: str | None) -> object:
    if isinstance(value, str):
        return _long_text(value, run_id, partition) if _MARK in value else value
    if isinstance(value, dict):
        return {
            _NAMES[name] if type(name) is int else name: (
                member if type(member) is int else _long(member, run_id, partition)
            )
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_long(item, run_id, partition) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    return format_time(value) if isinstance(value, datetime) else value


def _long_text(text: str, run_id: str, partition: str | None) -> str:
    names = _references(run_id, partition)
    return _renamed(text, lambda part: names[int(part[1:])] if part.startswith(_MARK) else part)


def _renamed(text: str, rename: Callable[[str], str]) -> str:
    """Rename what lies between the / and = of a text."""
    parts = _PARTED.split(text)
    parts[::2] = map(rename, parts[::2])
    return "".join(parts)


def _references(run_id: str, partition: str | None) -> list[str]:
    return [run_id, *(partition or "").split("/")][:_MOST_REFERENCES]


def _from_hex(text: str) -> bytes | None:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        return None
    return digest if digest.hex() == text else None


def _from_time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if format_time(time) == text else None
