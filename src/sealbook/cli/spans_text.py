"""Spans of time as people read them."""

from __future__ import annotations


def duration_text(seconds: float) -> str:
    """Return a span in its two largest units: `1d 3h`, `5m 20s`."""
    left = round(seconds)
    parts: list[str] = []
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (name == "s" and not parts):
            parts.append(f"{count}{name}")
    return " ".join(parts[:2])
