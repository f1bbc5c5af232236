"""Numbers of things, in words: the one place that knows of the plural."""

from __future__ import annotations


def counted(number: int, noun: str, one: str = "", many: str = "") -> str:
    """Return a number and its noun, and its verb if it has one: "1,200 partitions", "1 line is"."""
    verb = one if number == 1 else many
    return f"{number:,} {noun}{'' if number == 1 else 's'}{verb and f' {verb}'}"
