"""The one place that reads the clock and makes run ids."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sealbook.model import RunId

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the present time, aware, in UTC."""
    return datetime.now(UTC)


def new_run_id() -> RunId:
    """Make the id of a new run; call it once for each pipeline execution attempt (R-RUN-1)."""
    from ulid import ULID

    return RunId(str(ULID()))
