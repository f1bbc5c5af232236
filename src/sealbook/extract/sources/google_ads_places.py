"""Where in a query's text an error of Google Ads is: line, column, and an excerpt with a mark below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`")
_FIELD = re.compile(r"[a-z_]+(?:\.[a-z0-9_]+)+")
_LAST_WORD = re.compile(r"(\S+?)\.?\s*")


class Place(NamedTuple):
    """A part of a text; lines and columns are counted from 1."""

    line: int
    column: int
    length: int
    content: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"

    @property
    def excerpt(self) -> str:
        """The line, and marks below the place."""
        number = f"{self.line} | "
        return f"{number}{self.content}\n{' ' * (len(number) + self.column - 1)}{'^' * self.length}"


def place_of(text: str, trigger: str, message: str) -> Place | None:
    """Find what an error is about in the text: what the server names as its trigger, or quotes in its words.

    The server gives no position. This is only shown: what is done about an error goes by its code.
    """
    for word in map(str.strip, (trigger, *_mentioned(message))):
        found = re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.]*\w)", text) if word else None
        if found is not None:
            before = text[: found.start()]
            line = before.count("\n") + 1
            column = found.start() - (before.rfind("\n") + 1) + 1
            return Place(line, column, len(word.split("\n")[0]), text.split("\n")[line - 1])
    return None


def _mentioned(message: str) -> Iterator[str]:
    for quoted in _QUOTED.finditer(message):
        yield next(filter(None, quoted.groups()))
    yield from _FIELD.findall(message)
    last = _LAST_WORD.fullmatch(message.rpartition(" ")[2])
    if last is not None:
        yield last[1]
