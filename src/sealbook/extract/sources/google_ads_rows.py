"""Turns the nested protobuf rows of Google Ads into flat columns, by the field mask of the answer."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from struct import Struct
from typing import Any

from sealbook.errors import Permanent

Columns = dict[str, Any]

_FLOAT = Struct("f")


class RowFlattener:
    """Reads the fields of a field mask from rows: made once for a stream, called for each row.

    `campaign.id` becomes the column `campaign_id`. Enums are given by name, bytes in base64, numbers of 32
    bits by their shortest decimal, repeated fields as lists, messages as objects of the fields that are set.
    A field that is not set is null if its type can tell (`optional` fields and messages), and else has its
    default: 0, "", false, UNSPECIFIED, [].
    """

    def __init__(self, row_type: Any, paths: Sequence[str]) -> None:
        """Look the paths up in the descriptor of GoogleAdsRow, so that no row pays for it."""
        if not paths:
            raise Permanent("Google Ads sent rows without a field mask, so their columns are unknown")
        by_parent: dict[str, list[tuple[str, Any]]] = {}
        for path in paths:
            parent, field = _look_up(row_type, path)
            by_parent.setdefault(parent, []).append((path.replace(".", "_"), field))
        self._names = [name for found in by_parent.values() for name, _ in found]
        if len(set(self._names)) < len(self._names):
            raise Permanent(f"two fields of the query would be one column: {', '.join(sorted(paths))}")
        # Fields of the same message are read together: one way down for all of them.
        self._parents = _reader(by_parent)
        self._fields = [_reader(field.name for _, field in found) for found in by_parent.values()]
        self._optional: list[tuple[str, int, str]] = []
        self._messages: list[tuple[str, int, str]] = []
        self._converted: list[tuple[str, Callable[[Any], Any]]] = []
        for index, found in enumerate(by_parent.values()):
            for name, field in found:
                if field.message_type is not None and not field.is_repeated:
                    self._messages.append((name, index, field.name))
                elif field.has_presence:
                    self._optional.append((name, index, field.name))
                convert = _converter(field)
                if convert is not None:
                    self._converted.append((name, convert))

    def __call__(self, row: Any) -> Columns:
        """Give the columns of a row."""
        parents = self._parents(row)
        values: list[Any] = []
        for fields, parent in zip(self._fields, parents, strict=True):
            values += fields(parent)
        columns = dict(zip(self._names, values, strict=True))
        for name, index, field in self._optional:
            # What differs from the default was set; only the rest need be asked for.
            if not columns[name] and not parents[index].HasField(field):
                columns[name] = None
        for name, index, field in self._messages:
            if not parents[index].HasField(field):
                columns[name] = None
        for name, convert in self._converted:
            if columns[name] is not None:
                columns[name] = convert(columns[name])
        return columns


class _EnumNames(dict[int, str]):
    """Names by number. One that the server has learnt since becomes text, so the column keeps its type."""

    def __missing__(self, number: int) -> str:
        return str(number)


def _look_up(row_type: Any, path: str) -> tuple[str, Any]:
    """Find the field of a path, and the path of its message in the names of the Python client."""
    message, field, steps = row_type, None, []
    for step in path.split("."):
        # The client appends _ to names that Python has a meaning for: ad.type is ad.type_.
        fields = message.fields_by_name if message is not None else {}
        field = fields.get(step) or fields.get(f"{step}_")
        if field is None:
            break
        steps.append(field.name)
        message = field.message_type
    if field is None or len(steps) < 2:
        raise Permanent(
            f"the installed Google Ads client does not know the field {path}",
            remedy="Take the field out of the query, or install a newer version of google-ads.",
        )
    return ".".join(steps[:-1]), field


def _reader(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Read attributes as a tuple, also when there is but one."""
    names = tuple(names)
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda message: (read(message),)


@cache
def _converter(field: Any) -> Callable[[Any], Any] | None:
    """Return what makes a JSON value of the field's value; None if it is one already."""
    convert = _single_converter(field)
    if not field.is_repeated:
        return convert
    return list if convert is None else lambda values: [convert(value) for value in values]


def _single_converter(field: Any) -> Callable[[Any], Any] | None:
    if field.message_type is not None:
        return _object
    if field.enum_type is not None:
        return _EnumNames((value.number, value.name) for value in field.enum_type.values).__getitem__
    if field.type == field.TYPE_BYTES:
        return lambda data: b64encode(data).decode("ascii")
    if field.type == field.TYPE_FLOAT:
        return _shortest
    return None


def _shortest(value: float) -> float:
    """Return a number of 32 bits as the shortest decimal that stands for it: 1.1, not 1.100000023841858."""
    written = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next((each for each in written if _FLOAT.pack(each) == _FLOAT.pack(value)), value)


def _object(message: Any) -> Columns:
    columns = {}
    for field, value in message.ListFields():
        convert = _converter(field)
        columns[field.name.removesuffix("_")] = value if convert is None else convert(value)
    return columns
