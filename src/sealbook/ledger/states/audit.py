"""The log of overrides: who changed what by hand, and why (R-CTL-3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import Connection, Text, cast, insert, or_, select

from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import stream
from sealbook.ledger.states.tables import override_log
from sealbook.model import PartitionKey, RunId
from sealbook.model.selection import Selection
from sealbook.model.verdict import check_text

_EVERYTHING = Selection()


class Action(StrEnum):
    """What is done by hand, or by policy, and kept in the log."""

    REQUEUE = "requeue"
    ROLLBACK = "rollback"
    REPROCESS = "reprocess"
    BACKFILL = "backfill"
    PAUSE = "pause"
    RESUME = "resume"
    MARK = "mark"
    CLEAR = "clear"
    CANCEL = "cancel"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Override:
    """What somebody did: when, who, why, how partitions were chosen, and which they were."""

    id: int
    at: datetime
    actor: str
    action: Action
    reason: str
    filter: Mapping[str, object] | None
    keys: tuple[PartitionKey, ...]
    run_id: RunId | None
    """The run that was rolled back to, or that was cancelled."""


class OverrideLog:
    """The port of whoever asks who did what."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def entries(
        self,
        selection: Selection = _EVERYTHING,
        *,
        actions: Iterable[Action] | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
    ) -> Iterator[Override]:
        """Stream what was done, the latest first; with a selection, what was done to any of its partitions.

        `since` and `until` are times at which it was done; `before` is the last of the page before.
        """
        query = select(override_log)
        if actions is not None:
            query = query.where(override_log.c.action.in_([each.value for each in actions]))
        if actor is not None:
            query = query.where(override_log.c.actor == actor)
        if since is not None:
            query = query.where(override_log.c.at >= since)
        if until is not None:
            query = query.where(override_log.c.at < until)
        if before is not None:
            query = query.where(override_log.c.id < before)
        found = stream(self._database, query.order_by(override_log.c.id.desc()), _override)
        if selection.is_everything:
            return found
        return (each for each in found if _concerns(each, selection))

    def done_to(self, key: PartitionKey, actions: Iterable[Action]) -> list[Override]:
        """Return what was done to one partition, or to a scope that has it, the latest first.

        Each names this partition alone, whatever else it was done to: it may have been done to a million.
        """
        columns = [each for each in override_log.c if each.name != "keys"]
        named = cast(override_log.c["keys"], Text).contains(f'"{key}"', autoescape=True)
        scoped = cast(override_log.c["filter"], Text).contains('"scope":', autoescape=True)
        query = select(*columns).where(
            override_log.c.action.in_([each.value for each in actions]), or_(named, scoped)
        )
        found = stream(self._database, query.order_by(override_log.c.id.desc()), partial(_of_one, str(key)))
        return [each for each in found if _concerns(each, Selection(keys=[key]))]


def _of_one(key: str, *row: Any) -> Override:
    *first, run_id = row
    return _override(*first, [key], run_id)


def _concerns(entry: Override, selection: Selection) -> bool:
    """Tell whether something was done to a partition that is chosen, or to a scope that may have one."""
    scope = (entry.filter or {}).get("scope")
    if scope is None:
        return any(map(selection.matches, entry.keys))
    names = zip(("source", "customer_id", "query_name"), str(scope).split("/"), strict=True)
    fixed = {field: name for field, name in names if name != "*"}
    if selection.keys:
        return any(fixed.items() <= asdict(key).items() for key in selection.keys)
    chosen = {"source": selection.source, "customer_id": selection.customers, "query_name": selection.queries}
    return all(name in (chosen[field] or (name,)) for field, name in fixed.items())


def _override(*row: Any) -> Override:
    number, at, actor, action, reason, chosen_by, keys, run_id = row
    return Override(
        number, at, actor, Action(action), reason, chosen_by, tuple(map(PartitionKey.parse, keys)), run_id
    )


def log_override(
    connection: Connection,
    action: Action,
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
        action=action.value,
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
