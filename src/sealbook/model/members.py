"""Reading a JSON object member by member, with errors that name the place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar, cast

from sealbook.errors import InvalidInput
from sealbook.model.wire import parse_time

_Kind = TypeVar("_Kind")
_Word = TypeVar("_Word", bound=StrEnum)


class Members:
    """A JSON object of a known shape; each method reads one member, or refuses it."""

    def __init__(self, place: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise InvalidInput.of(place, value, "a JSON object")
        self._place = place
        self._value = value

    def text(self, name: str) -> str:
        """Read text."""
        return self._of_kind(name, str, "text")

    def text_or_none(self, name: str) -> str | None:
        """Read text that may be absent."""
        return None if self._value.get(name) is None else self.text(name)

    def time_or_none(self, name: str) -> datetime | None:
        """Read a time that may be absent."""
        text = self._value.get(name)
        return None if text is None else parse_time(f"{self._place}.{name}", text)

    def count(self, name: str) -> int:
        """Read a whole number from 0."""
        count = self._of_kind(name, int, "a whole number from 0")
        if isinstance(count, bool) or count < 0:
            raise InvalidInput.of(f"{self._place}.{name}", count, "a whole number from 0")
        return count

    def word(self, name: str, words: type[_Word]) -> _Word:
        """Read one word of an enumeration."""
        word = self.text(name)
        if word not in set(words):
            raise InvalidInput.of(f"{self._place}.{name}", word, f"one of {', '.join(words)}")
        return words(word)

    def values(self, name: str) -> tuple[object, ...]:
        """Read a list of any JSON values."""
        return tuple(cast("list[object]", self._of_kind(name, list, "a list")))

    def texts(self, name: str) -> tuple[str, ...]:
        """Read a list of texts."""
        texts = self.values(name)
        if not all(isinstance(text, str) for text in texts):
            raise InvalidInput.of(f"{self._place}.{name}", texts, "a list of texts")
        return cast("tuple[str, ...]", texts)

    def object(self, name: str) -> Members:
        """Read an object."""
        return Members(f"{self._place}.{name}", self._value.get(name))

    def objects(self, name: str) -> tuple[Members, ...]:
        """Read a list of objects."""
        return tuple(
            Members(f"{self._place}.{name}[{index}]", value) for index, value in enumerate(self.values(name))
        )

    def _of_kind(self, name: str, kind: type[_Kind], expected: str) -> _Kind:
        value = self._value.get(name)
        if not isinstance(value, kind):
            raise InvalidInput.of(f"{self._place}.{name}", value, expected)
        return value
