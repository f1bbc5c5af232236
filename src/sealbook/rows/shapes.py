"""What type a column would need, from the values that it has: the least that holds all of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sealbook.model.column_types import MOST_DIGITS, ColumnType
from sealbook.rows.types import FROM_TEXT
from sealbook.rows.values import Members, Number, Whole, mistyped

_MEMBER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MOST_MEMBERS = 50
"""An object with more names than this is a map, or JSON."""
_MOST_NESTING = 10


@dataclass
class Shape:
    """All values of a column that were seen, or of a part of them."""

    kinds: set[str] = field(default_factory=set)
    digits: int = 0
    is_large: bool = False
    """Some whole number needs more than 64 bits."""
    texts: set[ColumnType] = field(default_factory=lambda: set(FROM_TEXT))
    """What all strings can be read as, besides text."""
    element: Shape | None = None
    members: dict[str, Shape] = field(default_factory=dict)
    is_repeating: bool = False
    """Some object gives a name twice."""
    nulls: int = 0

    def add(self, value: object) -> None:
        """Take in a value, as it was decoded."""
        match value:
            case None:
                self.nulls += 1
            case Whole():
                self.kinds.add("whole")
                self.digits = max(self.digits, len(value.lstrip("-")))
                self.is_large = self.is_large or mistyped(value, ColumnType.BIGINT) is not None
            case Number():
                self.kinds.add("number")
            case bool():
                self.kinds.add("boolean")
            case str():
                self.kinds.add("text")
                self.texts = {each for each in self.texts if FROM_TEXT[each](value) is not None}
            case Members():
                self.kinds.add("object")
                self.is_repeating = self.is_repeating or len(dict(value)) < len(value)
                for name, each in value:
                    self.members.setdefault(name, Shape()).add(each)
            case list():
                self.kinds.add("array")
                self.element = self.element or Shape()
                for each in value:
                    self.element.add(each)

    def type(self, depth: int = 1) -> ColumnType:
        """Return the type that holds every value; `json` if none but that does, `string` if there is none."""
        match sorted(self.kinds):
            case []:
                return ColumnType.STRING
            case ["whole"]:
                return self._whole()
            case ["number"] | ["number", "whole"]:
                return ColumnType.DOUBLE
            case ["boolean"]:
                return ColumnType.BOOLEAN
            case ["text"]:
                return next((each for each in FROM_TEXT if each in self.texts), ColumnType.STRING)
            case ["array"] if depth < _MOST_NESTING and self.element is not None:
                element = self.element.type(depth + 1)
                return ColumnType.JSON if element is ColumnType.JSON else ColumnType(f"array<{element}>")
            case ["object"] if depth < _MOST_NESTING and not self.is_repeating:
                return self._object(depth)
        return ColumnType.JSON

    def _whole(self) -> ColumnType:
        if not self.is_large:
            return ColumnType.BIGINT
        return ColumnType(f"decimal({MOST_DIGITS},0)") if self.digits <= MOST_DIGITS else ColumnType.DOUBLE

    def _object(self, depth: int) -> ColumnType:
        types = {name: each.type(depth + 1) for name, each in self.members.items()}
        distinct = set(types.values())
        if not types or ColumnType.JSON in distinct:
            return ColumnType.JSON
        lower = [name.lower() for name in types]
        named = all(map(_MEMBER.fullmatch, types)) and len(set(lower)) == len(lower)
        if named and len(types) <= _MOST_MEMBERS:
            return ColumnType(f"struct<{','.join(f'{name}:{each}' for name, each in types.items())}>")
        return ColumnType(f"map<string,{distinct.pop()}>") if len(distinct) == 1 else ColumnType.JSON
