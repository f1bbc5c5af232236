"""Words for numbers of things."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural but for one: "1 partition", "1,200 partitions"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
