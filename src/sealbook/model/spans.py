"""Spans of time as people write them: `7d`, `12h`, `30m`."""

from __future__ import annotations

import re
from datetime import timedelta

from sealbook.errors import InvalidInput

_SECONDS = {"d": 86_400, "h": 3_600, "m": 60}
_SPAN = re.compile(r"([0-9]{1,5})([dhm])")


def parse_span(field: str, text: str) -> timedelta:
    """Read a number of days, hours or minutes."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise InvalidInput.of(field, text, "a number of days, hours or minutes, such as 7d, 12h or 30m")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
