"""Why a raw partition has no lines to look at: told by the task that reads it, and encoded as it is."""

from __future__ import annotations

from traceback import extract_tb

import msgspec

from sealbook.errors import first_line


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


class Defect(msgspec.Struct, frozen=True, array_like=True, tag="defect"):
    """Our own code fails on the run, in a way that nobody foresaw. It says nothing of the run."""

    reason: str

    @classmethod
    def of(cls, error: Exception) -> Defect:
        """Name the error, and where it came from, for whoever has to mend it."""
        [*_, place] = extract_tb(error.__traceback__)
        said = f"{type(error).__name__}: {first_line(error)} ({place.name}, line {place.lineno})"
        return cls(f"Sealbook itself fails on it: {said if said.isprintable() else ascii(said)}")


Problem = CorruptMetadata | CorruptPayload | OtherVersion | Unreadable | Defect
