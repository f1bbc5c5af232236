"""What this process and all that it has started have used: memory, processor time, statements, files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from sqlalchemy import Engine, event

_PEAK = re.compile(r"VmHWM:\s+([0-9]+) kB")
_FORGET_PEAK = "5"
"""What Linux takes in `clear_refs` for: from now on."""
_ENDED = (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError)
"""What is raised of a process that has ended since it was listed: Spark's come and go."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What some work took; memory is the highest meanwhile, of workers that of the largest one."""

    seconds: float
    cpu_seconds: float
    statements: int
    files: int
    driver_megabytes: float
    java_megabytes: float
    worker_megabytes: float


def usage_of(work: Callable[[], object], folder: Path) -> Usage:
    """Do something once; return what it took, and how many files there are more in a folder.

    A PostgreSQL server is a process of its own, which nobody here has started: it is not counted.
    """
    for process in _processes():
        with suppress(*_ENDED):
            Path(f"/proc/{process.pid}/clear_refs").write_text(_FORGET_PEAK)
    files, used, began = _files(folder), cpu_seconds(), time.perf_counter()
    with _statements() as statements:
        work()
    seconds = time.perf_counter() - began
    return Usage(
        seconds=seconds,
        cpu_seconds=cpu_seconds() - used,
        statements=len(statements),
        files=_files(folder) - files,
        driver_megabytes=peak_megabytes(psutil.Process()),
        java_megabytes=sum(map(peak_megabytes, started("java"))),
        worker_megabytes=max(map(peak_megabytes, started("python")), default=0.0),
    )


def peak_megabytes(process: psutil.Process) -> float:
    """Return the most memory that a process has had resident; 0 if it has ended."""
    with suppress(*_ENDED):
        match = _PEAK.search(Path(f"/proc/{process.pid}/status").read_text())
        return int(match[1]) / 1024 if match else 0.0
    return 0.0


def cpu_seconds() -> float:
    """Return the processor time of this process and all that it has started, also of what has ended since."""
    total = 0.0
    for each in _processes():
        with suppress(*_ENDED):  # then its parent has its time
            total += sum(each.cpu_times()[:4])
    return total


def started(name: str) -> list[psutil.Process]:
    """Return the processes of a program, by how its name begins, that this process has started."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with suppress(*_ENDED):
            if each.name().startswith(name):
                found.append(each)
    return found


def _processes() -> list[psutil.Process]:
    return [psutil.Process(), *psutil.Process().children(recursive=True)]


@contextmanager
def _statements() -> Iterator[list[str]]:
    """Yield what gathers the statements of this process; one with many rows counts once."""
    said: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        said.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def _files(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))
