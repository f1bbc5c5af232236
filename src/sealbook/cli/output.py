"""Results go to stdout, as a table or as JSON; messages for people go to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from sealbook.logs import is_json, tell
from sealbook.views.encoding import NamedTupleLike, encode, plain

if TYPE_CHECKING:
    from rich.text import Text

    from sealbook.cli.table import Column
    from sealbook.views.deeds import Deed

T = TypeVar("T")


class Format(StrEnum):
    """How results are shown."""

    TABLE = "table"
    JSON = "json"


def show(records: Iterable[T], columns: Sequence[Column[T]], form: Format) -> None:
    """Print records as a table of these columns, or as a JSON list of all their fields."""
    if form is Format.JSON:
        show_json(records)
    else:
        from sealbook.cli.table import print_table

        print_table(records, columns)


def show_object(record: object) -> None:
    """Print one JSON object to stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.write(encode(record) + b"\n")
    sys.stdout.buffer.flush()


def show_json(records: Iterable[object]) -> None:
    """Stream a JSON list of objects, one a line, to stdout; a named tuple is an object too."""
    sys.stdout.flush()
    out = sys.stdout.buffer  # JSON is UTF-8 whatever the terminal is
    separator = b"[\n"
    for record in records:
        out.write(separator)
        out.write(encode(plain(record)))
        separator = b",\n"
    out.write(b"[]\n" if separator == b"[\n" else b"\n]\n")
    out.flush()


def show_deed(deed: Deed, form: Format) -> None:
    """Print what was done as JSON, if that is asked for, and say it."""
    if form is Format.JSON:
        show_object(deed.content)
    message(deed.text)
    for note in deed.notes:
        message(f"  {note}")


def flat(record: Any) -> dict[str, object]:
    """Return a dataclass or named tuple that has a `key` as one object, the fields of its key first."""
    fields = record._asdict() if isinstance(record, NamedTupleLike) else asdict(record)
    del fields["key"]
    return {**asdict(record.key), **fields}


def message(text: str | Text) -> None:
    """Say something to the person in front of the terminal, or in the log."""
    if is_json():
        tell("message", message=str(text))
        return
    from rich.console import Console

    Console(stderr=True, soft_wrap=True, highlight=False, markup=False).print(text)
