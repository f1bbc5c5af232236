"""What the code says of itself."""

from __future__ import annotations

import inspect
import re


def said(thing: object) -> str:
    """Return a docstring as Markdown; an error without one: what is public says what it is."""
    text = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
    if not text:
        raise ValueError(f"{thing!r} has no docstring")
    return text


def in_a_row(text: str) -> str:
    """Return text for one cell of a table."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")
