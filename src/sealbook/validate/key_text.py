"""A primary key as evidence shows it: enough to find the row, and nothing that a terminal would obey."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

_LONGEST = 40


def key_text(values: Sequence[object]) -> str:
    """Return the values of a primary key as one short, printable text."""
    text = ", ".join(map(_text, values))
    if not text.isprintable():
        text = ascii(text)[1:-1]
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 1]}…"
    return text if len(values) == 1 else f"({text})"


def _text(value: object) -> str:
    """Return a value as Spark writes it, so that it makes no difference who has found it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case datetime():
            fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
            return f"{value.replace(microsecond=0, tzinfo=None)}{fraction}"  # strftime shortens early years
    return str(value)
