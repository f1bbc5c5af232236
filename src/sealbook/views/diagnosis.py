"""What a look at a book finds: each thing with how it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from sealbook.errors import SealbookError


class Level(StrEnum):
    """How something is."""

    OK = "ok"
    WARN = "warn"
    """All can go on, but somebody should see to it."""
    FAIL = "fail"
    """Something cannot be done before somebody sees to it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part of a book; `remedy` says what to do unless it is in order."""

    level: Level
    part: str
    text: str
    remedy: str | None = None


def ok(part: str, text: str) -> Finding:
    """Say that a part is in order."""
    return Finding(Level.OK, part, text)


def warn(part: str, text: str, remedy: str) -> Finding:
    """Say that somebody should see to a part."""
    return Finding(Level.WARN, part, text, remedy)


def examined(part: str, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield what a look finds; an error that ends it is a finding, too."""
    try:
        yield from look()
    except SealbookError as error:
        yield Finding(Level.FAIL, part, str(error).removeprefix(f"{part}: "), error.remedy)
