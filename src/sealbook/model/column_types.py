"""The types that a column can have: a type is its text, by the names of Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Self

from sealbook.errors import InvalidInput

MOST_DIGITS = 38
"""Of a decimal."""
_MOST_NESTING = 20

_TOKEN = re.compile(r"\s*(?:([A-Za-z0-9_]+)|([<>(),:]))")
_MEMBER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OTHER_NAMES = {
    "str": "string", "text": "string", "varchar": "string", "char": "string",
    "bool": "boolean", "integer": "int", "smallint": "int", "long": "bigint", "real": "float",
    "number": "double, or decimal(18,2) for an exact one", "numeric": "decimal(18,2)",
    "datetime": "timestamp", "variant": "json", "jsonb": "json", "object": "json", "list": "array<string>",
    "decimal": "decimal(18,2)", "array": "array<string>", "struct": "struct<name:string,count:bigint>",
    "map": "map<string,bigint>",
}  # fmt: skip
"""What to write for a name that is none here, or that needs more than its name."""

KINDS = (
    "string, boolean, int, bigint, float, double, date, timestamp, decimal(p,s), array<…>, struct<…>,"
    " map<string,…>, json"
)
"""What can be written, for messages."""


class ColumnType(str):
    """A type, made from its text: `bigint`, `decimal(18,2)`, `array<struct<id:bigint,name:string>>`.

    Equal types are one object. Those that hold other types or have digits are of the classes below.
    """

    __slots__ = ()

    STRING: ClassVar[ColumnType]
    BOOLEAN: ClassVar[ColumnType]
    INT: ClassVar[ColumnType]
    BIGINT: ClassVar[ColumnType]
    FLOAT: ClassVar[ColumnType]
    DOUBLE: ClassVar[ColumnType]
    DATE: ClassVar[ColumnType]
    TIMESTAMP: ClassVar[ColumnType]
    JSON: ClassVar[ColumnType]
    """Any value of JSON, kept as its text."""

    def __new__(cls, text: str) -> Self:
        """Return the type of a text; InvalidInput says what to write instead."""
        known = _KNOWN.get(text) or _parsed(text)
        if not isinstance(known, cls):
            raise InvalidInput.of("type", text, f"one of the kind {cls.__name__}")
        return known

    def __reduce__(self) -> tuple[type[ColumnType], tuple[str]]:
        return ColumnType, (str(self),)

    @property
    def is_nested(self) -> bool:
        """Whether a value is made of others, or may be any: there is no telling two of them apart quickly."""
        return isinstance(self, ArrayType | StructType | MapType) or self is ColumnType.JSON


class DecimalType(ColumnType):
    """An exact number of so many digits, so many of them behind the point."""

    __slots__ = ("precision", "scale")
    precision: int
    scale: int


class ArrayType(ColumnType):
    """A list of values of one type, each of which may be null."""

    __slots__ = ("element",)
    element: ColumnType


class StructType(ColumnType):
    """Members by name, each of a type of its own; one that is null or absent is null."""

    __slots__ = ("members",)
    members: dict[str, ColumnType]


class MapType(ColumnType):
    """Values of one type by any names, which are strings."""

    __slots__ = ("value",)
    value: ColumnType


_KNOWN: dict[str, ColumnType] = {}
"""Every type that was asked for, by its text; also by texts with blanks."""


def _made(cls: type[ColumnType], text: str, **parts: object) -> ColumnType:
    """Return the one object of a type."""
    found = _KNOWN.get(text)
    if found is None:
        found = str.__new__(cls, text)
        for name, part in parts.items():
            setattr(found, name, part)
        found = _KNOWN.setdefault(text, found)
    return found


for _name in ("string", "boolean", "int", "bigint", "float", "double", "date", "timestamp", "json"):
    setattr(ColumnType, _name.upper(), _made(ColumnType, _name))
SCALARS = tuple(_KNOWN.values())


def _parsed(text: str) -> ColumnType:
    if not isinstance(text, str):
        raise InvalidInput.of("type", text, f"one of {KINDS}")
    found = _Parser(text).whole()
    _KNOWN[text] = found
    return found


class _Parser:
    """Reads one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._at = 0

    def whole(self) -> ColumnType:
        found = self._type(depth=1)
        if self._at < len(self._tokens):
            raise self._error(f"nothing after {found}")
        return found

    def _split(self) -> Iterator[str]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            token = _TOKEN.match(self._text, at)
            if token is None:
                raise InvalidInput.of("type", self._text, f"one of {KINDS}")
            yield token[1] or token[2]
            at = token.end()

    def _type(self, depth: int) -> ColumnType:
        name = self._next("a type")
        if depth > _MOST_NESTING:
            raise self._error(f"types that lie at most {_MOST_NESTING} deep in each other")
        opened = self._peek() in ("<", "(")
        match name:
            case "decimal" if opened:
                return self._decimal()
            case "array" if opened:
                self._take("<")
                element = self._inner(depth)
                self._take(">")
                return _made(ArrayType, f"array<{element}>", element=element)
            case "map" if opened:
                return self._map(depth)
            case "struct" if opened:
                return self._struct(depth)
        found = next((each for each in SCALARS if each == name), None)
        if found is None or opened:
            instead = _OTHER_NAMES.get(name.lower())
            raise self._error(f"{instead}" if instead else f"one of {KINDS}")
        return found

    def _inner(self, depth: int) -> ColumnType:
        """Read a type inside another; the text of a part of a value is not kept."""
        found = self._type(depth + 1)
        if found is ColumnType.JSON:
            raise self._error("json for a column as a whole, or string")
        return found

    def _decimal(self) -> ColumnType:
        self._take("(")
        digits = [self._next("a number of digits")]
        if self._peek() == ",":
            self._take(",")
            digits.append(self._next("a number of digits"))
        self._take(")")
        if not all(each.isdecimal() and each.isascii() for each in digits):
            raise self._error("decimal(p,s) with two whole numbers, such as decimal(18,2)")
        precision, scale = int(digits[0]), int(digits[1]) if len(digits) > 1 else 0
        if not (1 <= precision <= MOST_DIGITS and scale <= precision):
            raise self._error(f"decimal(p,s) with p from 1 to {MOST_DIGITS} and s at most p")
        return _made(DecimalType, f"decimal({precision},{scale})", precision=precision, scale=scale)

    def _map(self, depth: int) -> ColumnType:
        self._take("<")
        if self._next("string") != "string":
            raise self._error("map<string,…>: the names of a JSON object are strings")
        self._take(",")
        value = self._inner(depth)
        self._take(">")
        return _made(MapType, f"map<string,{value}>", value=value)

    def _struct(self, depth: int) -> ColumnType:
        self._take("<")
        members: dict[str, ColumnType] = {}
        while True:
            name = self._next("the name of a member")
            if _MEMBER.fullmatch(name) is None:
                raise self._error(f"a letter, then letters, digits and _ instead of {name!r}")
            if name.lower() in map(str.lower, members):
                raise self._error(f"each member once, in upper or lower case; {name} is there twice")
            self._take(":")
            members[name] = self._inner(depth)
            if self._peek() != ",":
                break
            self._take(",")
        self._take(">")
        text = ",".join(f"{name}:{each}" for name, each in members.items())
        return _made(StructType, f"struct<{text}>", members=members)

    def _peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self, what: str) -> str:
        token = self._peek()
        if token is None or token in "<>(),:":
            raise self._error(f"{what} {self._where()}")
        self._at += 1
        return token

    def _take(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._error(f"a {sign} {self._where()}")
        self._at += 1

    def _where(self) -> str:
        return "at the end" if self._peek() is None else f"before {self._peek()!r}"

    def _error(self, expected: str) -> InvalidInput:
        return InvalidInput.of("type", self._text, expected)
