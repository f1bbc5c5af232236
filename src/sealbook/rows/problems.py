"""Why a raw partition has no lines to look at: told by the task that reads it, and encoded as it is."""

from __future__ import annotations

import msgspec


class CorruptMetadata(msgspec.Struct, frozen=True, array_like=True, tag="metadata"):
    """The metadata cannot be read, or does not agree with its path."""

    reason: str


class CorruptPayload(msgspec.Struct, frozen=True, array_like=True, tag="payload"):
    """The payload is not what was sealed. `size` and `sha256` are None if it is missing."""

    sealed_size: int
    sealed_sha256: str
    size: int | None = None
    sha256: str | None = None


class OtherVersion(msgspec.Struct, frozen=True, array_like=True, tag="version"):
    """The run is of another schema_version than was asked for, and was not looked at."""

    schema_version: str


class Unreadable(msgspec.Struct, frozen=True, array_like=True, tag="unreadable"):
    """The storage does not let anything be said of the run at present."""

    reason: str


Problem = CorruptMetadata | CorruptPayload | OtherVersion | Unreadable
