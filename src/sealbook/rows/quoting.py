"""Values of nested columns as strings that hold their JSON: then one parser reads every line.

Arrow's reader takes no map that is an object, nor any value as its text. So each value of a nested column is
put in quotes first, as it is written, and given its type afterwards, as dates are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sealbook.model.column_types import ArrayType, ColumnType, MapType, StructType
from sealbook.model.contract import Column
from sealbook.rows.line_check import ESCAPED_SURROGATE
from sealbook.rows.nested import extra_members
from sealbook.rows.values import decode

_ESCAPED_NAME = re.compile(rb"\\u00[3-7]")
"""A letter, digit or _ that is written as an escape: a name may be one that it does not look like."""


Members = dict[str, msgspec.Raw]
"""A line: its members by name, as they are written."""


class Quoting:
    """Puts the values of nested columns in quotes; there is nothing to do for a contract without any."""

    def __init__(self, columns: Sequence[Column]) -> None:
        nested = [column for column in columns if column.type.is_nested]
        self.names = tuple(column.name for column in nested)
        self._types = {column.name: column.type for column in nested if _has_struct(column.type)}
        self._outlines = {name: msgspec.json.Decoder(_outline(each)) for name, each in self._types.items()}
        # Of all columns: to put values in quotes, a line is read as a dictionary, which has each name once.
        self._quoted_names = [f'"{column.name}"'.encode() for column in columns]
        self._objects = msgspec.json.Decoder(Members)
        self._encode = msgspec.json.Encoder().encode

    def is_doubtful(self, text: bytes) -> bool:
        """Say whether any line needs the exact look: what is in quotes is not looked at by the parser.

        A column may be given twice, or a string have half of a surrogate pair.
        """
        if b"\\u" in text and (ESCAPED_SURROGATE.search(text) or _ESCAPED_NAME.search(text)):
            return True
        return any(line.count(name) > 1 for line in text.split(b"\n") for name in self._quoted_names)

    def quoted(self, text: bytes, *, exactly: bool) -> bytes | None:
        """Return lines with their nested values in quotes; None if one is no object of JSON.

        Also None if `exactly`, and a struct has members besides those of its type.
        """
        lines = []
        try:
            for line in text.split(b"\n")[:-1]:
                members = self._objects.decode(line)
                if exactly and not self._fits(members):
                    return None
                lines.append(self._encode(self._in_quotes(members)))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return b"\n".join([*lines, b""])

    def restored(self, plain: bytes, line: bytes) -> bytes:
        """Return a line that was left without nested columns with those that it had, in quotes."""
        members = self._in_quotes(self._objects.decode(line))
        nested = {name: members[name] for name in self.names if name in members}
        return self._encode({**self._objects.decode(plain), **nested})

    def extra_members(self, members: Members) -> Iterator[str]:
        """Yield the members that structs of a line have besides those of their types."""
        for name, expected in self._types.items():
            if name in members:
                yield from extra_members(name, decode(bytes(members[name]).decode()), expected)

    def _in_quotes(self, members: Members) -> Members:
        for name in self.names:
            if name in members and (text := bytes(members[name])) != b"null":
                members[name] = msgspec.Raw(self._encode(text.decode()))
        return members

    def _fits(self, members: Members) -> bool:
        try:
            for name, outline in self._outlines.items():
                if name in members:
                    outline.decode(members[name])
        except msgspec.ValidationError:
            return False
        return True


def _has_struct(column_type: ColumnType) -> bool:
    match column_type:
        case ArrayType():
            return _has_struct(column_type.element)
        case MapType():
            return _has_struct(column_type.value)
    return isinstance(column_type, StructType)


def _outline(column_type: ColumnType) -> Any:
    """Return the type by which msgspec finds whether a struct has members besides its own."""
    match column_type:
        case ArrayType():
            return list[_outline(column_type.element)] | None  # type: ignore[misc]
        case MapType():
            return dict[str, _outline(column_type.value)] | None  # type: ignore[misc]
        case StructType():
            names = {f"member_{place}": name for place, name in enumerate(column_type.members)}
            members = [(field, _outline(column_type.members[name]), None) for field, name in names.items()]
            return msgspec.defstruct("Outline", members, rename=names, forbid_unknown_fields=True) | None
    return msgspec.Raw
