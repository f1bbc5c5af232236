"""The front door: how every query stands, what runs, what changed, and the grid, worst first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sealbook.config import SourceSettings
from sealbook.ledger.events import Lag, RunStoreReader
from sealbook.ledger.reader import LedgerReader
from sealbook.ledger.schedule.pauses import Pause
from sealbook.ledger.schedule.reader import LaneCounts, ScheduleReader
from sealbook.model import PartitionKey
from sealbook.model.expectations import Expectations
from sealbook.model.publication import Change, Cut
from sealbook.model.run_snapshot import RunSnapshot, RunStatus
from sealbook.model.selection import Selection
from sealbook.model.status_line import DayCells, QueryCounts, StatusCounts
from sealbook.model.work import Lane
from sealbook.views.grid import Grid, Step

if TYPE_CHECKING:
    from sealbook.book import BookReader

STALLED = timedelta(minutes=15)
"""A run that has not ended, and has said nothing for so long, has stalled."""

ROWS = 20
"""Customers of each query that are in the grid, the worst of them."""

RECENT = 100
"""Runs that are looked at for what runs and what has stalled."""


@dataclass(frozen=True, slots=True)
class RunNow:
    """A run that has not ended, and for how long it has said nothing."""

    snapshot: RunSnapshot
    quiet: timedelta

    @property
    def run_id(self) -> str:
        """The run, which may be another engine's."""
        return self.snapshot.run_id

    @property
    def ways(self) -> list[str]:
        """The commands that show what it did last, and that end it; the one that began it goes on with it."""
        return [
            f"sealbook events {self.run_id}",
            f"sealbook state cancel {self.run_id} --reason '…'",
        ]

    @property
    def stalled(self) -> bool:
        """Whether there is no sign of life."""
        return self.quiet > STALLED

    def to_dict(self) -> dict[str, object]:
        """Return the run as one object."""
        return {
            "run_id": self.run_id,
            "status": self.snapshot.status,
            "started_at": self.snapshot.started_at,
            "quiet_seconds": self.quiet.total_seconds(),
            "stalled": self.stalled,
        }


@dataclass(frozen=True, slots=True)
class Runs:
    """The last run that has ended, and those that have not."""

    last: RunSnapshot | None
    unended: tuple[RunNow, ...]

    def partitions(self, ledger: LedgerReader) -> list[PartitionKey]:
        """Return the partitions that a run is at work on just now."""
        alive = (run.run_id for run in self.unended if not run.stalled)
        return [key for run_id in alive for key in ledger.left_of(run_id)]

    def to_dict(self) -> dict[str, object]:
        """Return one object."""
        last = None
        if self.last is not None:
            last = {
                "run_id": self.last.run_id,
                "status": self.last.status,
                "started_at": self.last.started_at,
                "completed_at": self.last.completed_at,
            }
        return {"last": last, "unended": [each.to_dict() for each in self.unended]}


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is open, by lane, and what is paused."""

    lanes: Mapping[Lane, LaneCounts]
    pauses: tuple[Pause, ...]

    @property
    def total(self) -> LaneCounts:
        """The lanes added up."""
        return LaneCounts(*map(sum, zip(*self.lanes.values(), strict=True)))

    def to_dict(self) -> dict[str, object]:
        """Return one object."""
        return {
            "lanes": {lane.value: counts._asdict() for lane, counts in self.lanes.items()},
            "pauses": [{"scope": str(each.scope), **_without_scope(each)} for each in self.pauses],
        }


def _without_scope(pause: Pause) -> dict[str, object]:
    return {name: value for name, value in asdict(pause).items() if name not in ("id", "scope")}


@dataclass(frozen=True, slots=True)
class Changes:
    """How many partitions changed since a time or a cut, by how they did."""

    since: datetime | Cut
    counts: Mapping[Change, int]

    def to_dict(self) -> dict[str, object]:
        """Return one object; a cut goes by its token."""
        since = self.since.token if isinstance(self.since, Cut) else self.since
        return {"since": since, **{kind.value: count for kind, count in self.counts.items()}}


@dataclass(frozen=True, slots=True)
class Board:
    """All that `sealbook status` shows."""

    now: datetime
    counts: StatusCounts
    runs: Runs
    schedule: Schedule
    changes: Changes
    grid: Grid
    lag: Lag

    @property
    def total(self) -> QueryCounts:
        """The queries added up."""
        rows = [each._asdict() for each in self.counts.queries.values()]
        days = [row.pop("newest_day") for row in rows]
        sums = {name: sum(row[name] for row in rows) for name in (rows[0] if rows else ())}
        return QueryCounts(**sums, newest_day=max(filter(None, days), default=None))

    def to_dict(self) -> dict[str, object]:
        """Return one object."""
        counts = self.counts
        return {
            "now": self.now,
            "queries": [
                {"source": asset.source, "query_name": asset.query_name, **each._asdict()}
                for asset, each in counts.queries.items()
            ],
            "total": self.total._asdict(),
            "displays": {name.value: count for name, count in counts.displays.items()},
            "availabilities": {name.value: count for name, count in counts.availabilities.items()},
            "stale_reasons": {name.value: count for name, count in counts.reasons.items()},
            "runs": self.runs.to_dict(),
            "schedule": self.schedule.to_dict(),
            "changes": self.changes.to_dict(),
            "grid": self.grid.to_dict(),
            "lag": {"events": self.lag.events, "seconds": self.lag.seconds, "alert": self.lag.alert},
        }


def board_of(
    book: BookReader, selection: Selection, since: datetime | Cut, *, width: int | None = None
) -> Board:
    """Gather the board of what is chosen; the grid fits into so many characters, or has all days."""
    ledger, expectations = book.ledger, book.expectations()
    runs = runs_of(ledger, expectations.now)
    own = _configured(book.settings.sources, selection)
    return Board(
        expectations.now,
        ledger.statuses.counts(expectations, selection),
        runs,
        Schedule(ledger.schedule.lanes(own), _pauses(ledger.schedule, own)),
        Changes(since, ledger.pointers.count_changes(own, since)),
        _grid(ledger, expectations, selection, runs, width),
        ledger.statuses.lag(),
    )


def _configured(sources: Mapping[str, SourceSettings], selection: Selection) -> Selection:
    """Return what is chosen of what is configured: books of other tenants may share the ledger."""
    of = [each for name, each in sources.items() if selection.source is None or name in selection.source]
    return replace(
        selection,
        source=tuple(each.name for each in of),
        customers=selection.customers or tuple(sorted({one for each in of for one in each.customers})),
        queries=selection.queries or tuple(sorted({one for each in of for one in each.queries})),
    )


def _pauses(schedule: ScheduleReader, selection: Selection) -> tuple[Pause, ...]:
    """Return the pauses that hold something back of what is chosen."""
    sources, customers, queries = selection.source or (), selection.customers or (), selection.queries or ()
    return tuple(
        each
        for each in schedule.pauses()
        if each.scope.source in sources
        and each.scope.customer_id in (None, *customers)
        and each.scope.query_name in (None, *queries)
    )


def _grid(
    ledger: LedgerReader,
    expectations: Expectations,
    selection: Selection,
    runs: Runs,
    width: int | None,
) -> Grid:
    """Read the cells of what is in view, and of nothing else."""
    reader = ledger.statuses
    worst = reader.worst(expectations, selection, ROWS)
    if worst is None:
        return Grid(Step.DAY, (), ())
    running = runs.partitions(ledger)
    found: list[DayCells] = []
    for asset, customers in worst.customers.items():
        of_query = replace(selection, source=(asset.source,), queries=(asset.query_name,))
        shown = replace(of_query, customers=tuple(customers))
        found += reader.cells(expectations, shown, worst.first, worst.last, running=running)
    return Grid.of(found, worst.first, worst.last, width=width, left_out=worst.left_out)


def runs_of(ledger: LedgerReader, now: datetime) -> Runs:
    """Look at the latest runs of the book: which has ended last, and which have not."""
    latest = [each.snapshot for each in ledger.run_store.list_runs(RECENT)]
    own = ledger.statuses.own_runs(each.run_id for each in latest)
    found = [each for each in latest if each.run_id in own]
    last = next((each for each in found if each.status.final), None)
    going = [each for each in found if each.status in (RunStatus.RUNNING, RunStatus.PAUSED)]
    return Runs(last, tuple(RunNow(each, now - _last_sign(ledger.run_store, each, now)) for each in going))


def _last_sign(store: RunStoreReader, run: RunSnapshot, now: datetime) -> datetime:
    """Return when a run last said anything."""
    signs = [each.persisted_at for each in store.fetch_events(run.run_id, run.last_event_seq - 1)]
    return min(max(filter(None, [*signs, run.started_at]), default=now), now)
