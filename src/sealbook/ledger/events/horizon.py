"""Up to when a run is not from the future (R-RUN-2)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, select
from ulid import ULID

from sealbook.ledger.events.tables import newest_run
from sealbook.model.keys import is_ahead, refuse_ahead


def run_horizon(connection: Connection, now: datetime) -> datetime:
    """Return the time up to which runs may have been opened: now, or when the ledger opened its newest one.

    A clock that was ahead once, and was set right, must not make the ledger refuse its own runs.
    """
    opened: str | None = connection.execute(select(newest_run.c.run_id)).scalar()
    return max(now, ULID.from_str(opened).datetime) if opened else now


def refuse_from_the_future(connection: Connection, run_ids: Iterable[str], now: datetime) -> None:
    """Refuse runs from the future, by name; only where one is ahead of the clock is more asked."""
    ahead = [run_id for run_id in run_ids if is_ahead(run_id, now)]
    horizon = run_horizon(connection, now) if ahead else now
    for run_id in ahead:
        refuse_ahead(run_id, horizon)
