"""Records of JSON as rows: which of their members become columns. Numbers stay as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import msgspec

from sealbook.errors import InvalidInput
from sealbook.raw import Row

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Way(str):
    """The way to a member of a JSON object: names with dots between, `customer.address.city`."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Read a way; InvalidInput if a name is empty."""
        if not all(text.split(".")):
            raise InvalidInput.of("path", text, "names with dots between, such as data.orders")
        return super().__new__(cls, text)

    def inside(self, document: msgspec.Raw | bytes) -> msgspec.Raw | None:
        """Return what is there; None if there is no such member. A name with dots in it is found first."""
        members = members_of(document)
        if members is None or self in members:
            return None if members is None else members[self]
        first, _, rest = self.partition(".")
        return Way(rest).inside(members[first]) if rest and first in members else None


def members_of(document: msgspec.Raw | bytes) -> dict[str, msgspec.Raw] | None:
    """Return the members of a JSON object, not yet read; None if it is none."""
    try:
        return _MEMBERS.decode(document)
    except msgspec.DecodeError:  # of which a ValidationError is one
        return None


def row_of(record: msgspec.Raw | bytes, columns: Mapping[str, Way]) -> Row:
    """Return a record as a row: on one line, or the members that columns are made of.

    What is not an object is handed on as it is: the validator says which line that is.
    """
    try:
        line = msgspec.json.format(bytes(record), indent=-1)
    except msgspec.DecodeError:
        return bytes(record)
    if not columns or members_of(line) is None:
        return line
    found = {column: way.inside(line) for column, way in columns.items()}
    return {column: value for column, value in found.items() if value is not None}
