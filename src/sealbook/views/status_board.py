"""The front door: how every query stands, what runs, what changed, and the grid, worst first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sealbook.book import BookReader
from sealbook.ledger.events import Lag, RunStoreReader
from sealbook.ledger.status.reader import StatusReader
from sealbook.model import PartitionKey, RunId
from sealbook.model.expectations import Expectations
from sealbook.model.publication import Change, Cut
from sealbook.model.run_snapshot import RunSnapshot, RunStatus
from sealbook.model.selection import Selection
from sealbook.model.status_line import QueryCounts, StatusCounts
from sealbook.views.grid import Grid, Step

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
    def stalled(self) -> bool:
        """Whether there is no sign of life."""
        return self.quiet > STALLED

    def to_dict(self) -> dict[str, object]:
        """Return the run as one object."""
        return {
            "run_id": self.snapshot.run_id,
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
            "changes": self.changes.to_dict(),
            "grid": self.grid.to_dict(),
            "lag": {"events": self.lag.events, "seconds": self.lag.seconds, "alert": self.lag.alert},
        }


def board_of(
    book: BookReader, selection: Selection, since: datetime | Cut, *, width: int | None = None
) -> Board:
    """Gather the board of what is chosen; the grid fits into so many characters, or has all days."""
    ledger = book.ledger
    expectations = book.expectations()
    runs = runs_of(ledger.run_store, expectations.now)
    running = {
        key for run in runs.unended if not run.stalled for key in ledger.left_of(RunId(run.snapshot.run_id))
    }
    return Board(
        expectations.now,
        ledger.statuses.counts(expectations, selection),
        runs,
        Changes(since, ledger.pointers.changes(selection, since)),
        _grid(ledger.statuses, expectations, selection, running, width),
        ledger.statuses.lag(),
    )


def _grid(
    reader: StatusReader,
    expectations: Expectations,
    selection: Selection,
    running: Collection[PartitionKey],
    width: int | None,
) -> Grid:
    found = reader.cells(expectations, selection, running=running, rows=ROWS)
    if found is None:
        return Grid(Step.DAY, (), ())
    return Grid.of(found.rows, found.first, found.last, width=width, left_out=found.left_out)


def runs_of(store: RunStoreReader, now: datetime) -> Runs:
    """Look at the latest runs: which has ended last, and which have not."""
    found = [each.snapshot for each in store.list_runs(RECENT)]
    last = next((each for each in found if each.status.final), None)
    going = [each for each in found if each.status in (RunStatus.RUNNING, RunStatus.PAUSED)]
    return Runs(last, tuple(RunNow(each, now - _last_sign(store, each, now)) for each in going))


def _last_sign(store: RunStoreReader, run: RunSnapshot, now: datetime) -> datetime:
    """Return when a run last said anything."""
    signs = [each.persisted_at for each in store.fetch_events(run.run_id, run.last_event_seq - 1)]
    return min(max(filter(None, [*signs, run.started_at]), default=now), now)
