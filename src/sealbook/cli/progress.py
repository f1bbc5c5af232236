"""Progress bars on stderr for long work: how much is done, how fast, time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from sealbook.logs import is_json
from sealbook.model.partition_events import Stage

if TYPE_CHECKING:
    from sealbook.pipeline.pipeline import OnStage

_MEGABYTE = 1_000_000
_PARTITIONS = "partitions, {task.fields[details]}"
_DESCRIPTIONS = {Stage.EXTRACT: "Extracting", Stage.VALIDATE: "Validating", Stage.LOAD: "Loading"}


@dataclass
class Tracker:
    """What has been done so far; tell it of each step."""

    _progress: Progress = field(repr=False)
    _task: TaskID
    _started: float = field(default_factory=time.monotonic)
    rows: int = 0
    bytes: int = 0

    def advance(self, partitions: int, *, rows: int, size: int) -> None:
        """Count partitions that are done, with their rows and bytes."""
        self.rows += rows
        self.bytes += size
        rate = self.bytes / _MEGABYTE / max(time.monotonic() - self._started, 1e-9)
        self._progress.update(self._task, advance=partitions, details=f"{self.rows:,} rows, {rate:.1f} MB/s")


@contextmanager
def partitions_progress(description: str, total: int) -> Iterator[Tracker]:
    """Show a bar while the block lasts, where stderr is a terminal; elsewhere show nothing."""
    with _progress(_PARTITIONS) as progress:
        yield _tracker(progress, description, total)


@contextmanager
def stages_progress() -> Iterator[OnStage]:
    """Show a bar for each stage of a run in the same way; tell what is yielded that a stage begins."""
    with _progress(_PARTITIONS) as progress:
        yield lambda stage, total: _tracker(progress, _DESCRIPTIONS[stage], total).advance


@contextmanager
def events_progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar in the same way; tell what is yielded how many events are done."""
    with _progress("events") as progress:
        task = progress.add_task(description, total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def tables_progress(description: str) -> Iterator[Callable[[str, int], None]]:
    """Show in the same way how many rows are done of nobody knows how many; tell it table and rows."""
    with _progress("rows, now {task.fields[table]}") as progress:
        task = progress.add_task(description, total=None, table="counting")
        yield lambda table, rows: progress.update(task, advance=rows, table=table)


def _tracker(progress: Progress, description: str, total: int) -> Tracker:
    width = max(map(len, _DESCRIPTIONS.values()))
    return Tracker(progress, progress.add_task(f"{description:<{width}}", total=total, details="0 rows"))


def _progress(unit: str) -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=is_json() or not console.is_terminal, transient=True)
