"""The log of overrides: who changed what by hand, and why (R-CTL-3)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, insert

from sealbook.ledger.states.tables import override_log
from sealbook.model import PartitionKey, RunId
from sealbook.model.verdict import check_text


def log_override(
    connection: Connection,
    action: str,
    keys: Iterable[PartitionKey],
    *,
    actor: str,
    reason: str,
    at: datetime,
    filter: dict[str, object] | None = None,  # noqa: A002 - the log's own word for it
    run_id: RunId | None = None,
) -> int:
    """Record who did what and why, and return the id of the record."""
    logged = insert(override_log).values(
        at=at,
        actor=actor,
        action=action,
        reason=reason,
        filter=filter,
        keys=[str(key) for key in keys],
        run_id=run_id,
    )
    override: int = connection.execute(logged.returning(override_log.c.id)).scalar_one()
    return override


def check_author(actor: str, reason: str) -> None:
    """Refuse a control action that does not say who and why; both go into the log."""
    check_text("actor", actor)
    check_text("reason", reason)
