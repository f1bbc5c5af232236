"""Leases, budgets and pauses as they are listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice

from sealbook.config import Settings
from sealbook.errors import InvalidInput
from sealbook.ledger.reader import LedgerReader
from sealbook.ledger.schedule.pauses import Pause, PauseCause
from sealbook.ledger.work.rows import OpenWork
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection
from sealbook.model.work import Lane, WorkKind


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A partition that somebody works on."""

    key: PartitionKey
    holder: str
    lane: Lane
    kind: WorkKind
    fence: int
    claimed_at: datetime
    expires_at: datetime
    held_seconds: float
    left_seconds: float
    plan_id: int | None

    @property
    def expired(self) -> bool:
        """Whether the lease has run out."""
        return self.left_seconds <= 0

    def to_dict(self) -> dict[str, object]:
        """Return it as one object, the fields of its key first."""
        fields = asdict(self)
        del fields["key"]
        return {**asdict(self.key), **fields, "expired": self.expired}


def lease_rows(
    ledger: LedgerReader, limit: int | None = None, *, expired: bool = False, lanes: Sequence[str] = ()
) -> list[LeaseRow]:
    """Return what is being worked on, holder by holder; only leases that have run out, if asked for those."""
    for each in lanes:
        if each not in list(Lane):
            raise InvalidInput.of("lane", each, f"one of {', '.join(Lane)}")
    now = ledger.now()
    rows = (_lease_row(each, now) for each in ledger.schedule.leases())
    chosen = (row for row in rows if (row.expired or not expired) and (not lanes or row.lane in lanes))
    return list(islice(chosen, limit))


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A lane: its share of the work, and how what is open in it stands."""

    lane: Lane
    share: int
    ready: int
    waiting: int
    held: int
    paused: int
    stopped: int

    def to_dict(self) -> dict[str, object]:
        """Return it as one object."""
        return asdict(self)


def lane_rows(ledger: LedgerReader, settings: Settings, selection: Selection) -> list[LaneRow]:
    """Return every lane, by what is open in it of the partitions that are chosen."""
    return [
        LaneRow(lane, settings.control.shares[lane], *counts)
        for lane, counts in ledger.schedule.lanes(selection).items()
    ]


def pause_rows(ledger: LedgerReader) -> list[PauseRow]:
    """Return what is paused."""
    return [PauseRow.of(each) for each in ledger.schedule.pauses()]


def _lease_row(each: OpenWork, now: datetime) -> LeaseRow:
    if each.holder is None or each.claimed_at is None or each.expires_at is None:
        raise AssertionError(f"{each.key} is held by nobody")
    return LeaseRow(
        each.key,
        each.holder,
        each.work.lane,
        each.work.kind,
        each.fence,
        each.claimed_at,
        each.expires_at,
        (now - each.claimed_at).total_seconds(),
        (each.expires_at - now).total_seconds(),
        each.plan_id,
    )


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """What a lane of a source has used in the last 24 hours, and its share; of the source, what is left."""

    source: str
    lane: Lane
    used: int
    share: int | None
    requests_per_day: int | None
    left: int | None
    next_room_at: datetime | None

    def to_dict(self) -> dict[str, object]:
        """Return it as one object."""
        return asdict(self)


def budget_lines(ledger: LedgerReader, settings: Settings) -> list[BudgetLine]:
    """Return the lanes of every configured source."""
    spent, control = ledger.schedule.spent(), settings.control
    total = sum(control.shares.values())
    lines = []
    for source in settings.sources:
        limit = control.requests_per_day.get(source)
        used = {lane: spent.get((source, lane), 0) for lane in Lane}
        left = None if limit is None else max(limit - sum(used.values()), 0)
        opens = None if limit is None else ledger.schedule.next_room_at(source)
        lines += [
            BudgetLine(
                source,
                lane,
                used[lane],
                None if limit is None else limit * control.shares[lane] // total,
                limit,
                left,
                opens,
            )
            for lane in Lane
        ]
    return lines


@dataclass(frozen=True, slots=True)
class PauseRow:
    """A scope that waits."""

    scope: str
    cause: PauseCause
    since: datetime
    until: datetime | None
    actor: str
    reason: str

    @classmethod
    def of(cls, found: Pause) -> PauseRow:
        """Make the row of a pause."""
        return cls(str(found.scope), found.cause, found.since, found.until, found.actor, found.reason)

    def to_dict(self) -> dict[str, object]:
        """Return it as one object."""
        return asdict(self)
