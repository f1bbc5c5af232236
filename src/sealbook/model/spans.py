"""Spans of time as people write them: `7d`, `12h`, `30m`, `10s`."""

from __future__ import annotations

import re
from datetime import timedelta

from sealbook.errors import InvalidInput

_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SPAN = re.compile(r"([0-9]{1,5})([dhms])")


def parse_span(field: str, text: str) -> timedelta:
    """Read a number of days, hours, minutes or seconds."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise InvalidInput.of(field, text, "a number of days, hours, minutes or seconds: 7d, 12h, 30m, 10s")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def duration_text(seconds: float) -> str:
    """Return a span in its two largest units: `1d 3h`, `5m 20s`."""
    left = round(seconds)
    parts: list[str] = []
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (name == "s" and not parts):
            parts.append(f"{count}{name}")
    return " ".join(parts[:2])
