"""What was done by hand or by policy, as it is listed (R-CTL-3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sealbook.errors import InvalidInput
from sealbook.ledger.reader import LedgerReader
from sealbook.ledger.states.audit import Action, Override
from sealbook.model.selection import Selection
from sealbook.views.choosing import parse_time


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries, as people write it: by action, by who did it, by when, and behind which one."""

    actions: Sequence[str] = ()
    actor: str | None = None
    begin: str | None = None
    end: str | None = None
    before: int | None = None


def audit_entries(
    ledger: LedgerReader, selection: Selection, where: AuditFilter, limit: int
) -> list[Override]:
    """Return what was done to partitions that are chosen, or to a scope that has them, the latest first."""
    found = ledger.override_log.entries(
        selection,
        actions=[_action(each) for each in where.actions] or None,
        actor=where.actor,
        since=_time("from", where.begin),
        until=_time("to", where.end),
        before=where.before,
    )
    return list(islice(found, limit))


def entry_dict(entry: Override) -> dict[str, object]:
    """Return an entry as one object."""
    return {
        "id": entry.id,
        "at": entry.at,
        "actor": entry.actor,
        "action": entry.action,
        "reason": entry.reason,
        "filter": entry.filter,
        "run_id": entry.run_id,
        "partitions": [str(key) for key in entry.keys],
    }


def entry_says(entry: dict[str, object]) -> Iterator[str]:
    """Say what something was done to: a scope, a plan, a cut, a run, and the partition if it is one."""
    chosen_by, keys = entry["filter"] or {}, entry["partitions"]
    assert isinstance(chosen_by, dict)  # as `entry_dict` has them
    assert isinstance(keys, list)
    if "scope" in chosen_by:
        yield str(chosen_by["scope"])
    if chosen_by.get("plan") is not None:
        name = chosen_by.get("name")
        yield f"plan {chosen_by['plan']}" + ("" if name is None else f" ({name})")
    if "cut" in chosen_by:
        yield f"cut {chosen_by['cut']}"
    if len(keys) == 1:
        yield str(keys[0])
    if entry["run_id"] is not None:
        yield f"run {entry['run_id']}"


def _action(text: str) -> Action:
    if text not in list(Action):
        raise InvalidInput.of("action", text, f"one of {', '.join(Action)}")
    return Action(text)


def _time(field: str, text: str | None) -> datetime | None:
    return None if text is None else parse_time(field, text)
