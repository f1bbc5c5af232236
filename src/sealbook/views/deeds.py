"""What is done by hand besides plans, done or only looked at: as one object, and in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sealbook.ledger.schedule.pauses import Scope
from sealbook.model import PartitionKey, RunId
from sealbook.model.publication import Cut
from sealbook.model.status_line import StatusCounts
from sealbook.model.words import counted
from sealbook.views.backfills import BackfillRow

if TYPE_CHECKING:
    from sealbook.control.backfills import Backfill
    from sealbook.ledger.rollbacks import RolledBack  # which can write


@dataclass(frozen=True, slots=True)
class Deed:
    """What was done, or would be by a dry run: `content` is what JSON says of it."""

    content: dict[str, object]
    text: str
    notes: tuple[str, ...] = ()


def rolled_back(done: RolledBack, to: RunId, *, dry_run: bool) -> Deed:
    """Tell of a rollback."""
    told = {"from_run_id": done.from_run_id, "to_run_id": to, "newest_run_id": done.newest_run_id}
    would = "would go" if dry_run else "went"
    readers = (
        "get it at once" if done.is_readable else "get nothing of it until `sealbook load` has staged it"
    )
    return Deed(
        {**asdict(done.key), **told, "is_readable": done.is_readable, "dry_run": dry_run},
        f"{done.key} {would} from run {done.from_run_id} to run {to}; readers {readers}."
        f" Only a run newer than {done.newest_run_id} takes authority by itself.",
    )


def paused(scope: Scope, until: datetime | None, waiting: int, *, dry_run: bool) -> Deed:
    """Tell of a pause, and how much waits for its end."""
    would = "would be" if dry_run else "is"
    ends = "" if until is None else f" until {until:%Y-%m-%d %H:%M} UTC"
    return Deed(
        {"scope": str(scope), "until": until, "open": waiting, "dry_run": dry_run},
        f"{scope} {would} paused{ends}: {counted(waiting, 'partition', 'waits', 'wait')}.",
    )


def resumed(scope: Scope, before: Iterable[Scope], *, dry_run: bool) -> Deed:
    """Tell of the end of a pause, and of what was paused `before` and is still."""
    scopes = list(before)
    goes = "would go" if dry_run else "goes"
    is_paused = scope in scopes
    return Deed(
        {"scope": str(scope), "paused": is_paused, "dry_run": dry_run},
        f"{scope} is not paused." if dry_run and not is_paused else f"{scope} {goes} on.",
        tuple(f"{each} is paused still." for each in scopes if each != scope and _overlap(each, scope)),
    )


def cancelled(run_id: RunId, left: Sequence[PartitionKey], *, dry_run: bool) -> Deed:
    """Tell of a run that is stopped on purpose, and of what it leaves undone."""
    would, will = ("would be", "would") if dry_run else ("is", "will")
    return Deed(
        {"run_id": run_id, "partitions": [str(key) for key in left], "dry_run": dry_run},
        f"Run {run_id} {would} cancelled: {counted(len(left), 'partition')} {will} not be done.",
    )


def backfill_changed(found: Backfill, *, dry_run: bool) -> Deed:
    """Tell how a backfill is, after it was paused, went on or was cancelled."""
    row = BackfillRow.of(found)
    said = f"{'Nothing was done. ' if dry_run else ''}{row.title} is {row.state}. {row.says}"
    return Deed({**row.to_dict(), "dry_run": dry_run}, said)


def cut_planned(name: str | None, counts: StatusCounts) -> Deed:
    """Tell what a cut would pin."""
    readable = sum(count for each, count in counts.availabilities.items() if each.readable)
    what = "A cut" if name is None else f"Cut {name}"
    return Deed(
        {"token": name, "partitions": readable, "dry_run": True},
        f"{what} would pin {counted(readable, 'partition')} as consumers can read them now.",
    )


def cut_made(made: Cut) -> Deed:
    """Tell of a cut that was made."""
    return Deed(asdict(made), f"Cut {made.token} pins version {made.version} of the warehouse.")


def _overlap(one: Scope, other: Scope) -> bool:
    """Tell whether two scopes have partitions in common."""
    pairs = zip(str(one).split("/"), str(other).split("/"), strict=True)
    return all(a == b or "*" in (a, b) for a, b in pairs)
