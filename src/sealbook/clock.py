"""The one place that reads the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the present time, aware, in UTC."""
    return datetime.now(UTC)
