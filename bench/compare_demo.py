"""`sealbook demo`, from prompt to the first grid, against a bare Spark session that counts ten rows."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.compare_startup import ROUNDS, bare, wait_for_archive
from bench.harness import Result, duration, seconds_of
from tests.support.cli import SEALBOOK

_LEGEND = "■ readable"
"""How the last line of a grid ends."""


def run() -> list[Result]:
    """Measure each in a process of its own, in turn; the first time has neither a book nor an archive."""
    alone, first, later = [], [], []
    with tempfile.TemporaryDirectory() as name:
        for number in range(ROUNDS):
            folder = Path(name) / str(number)
            folder.mkdir()
            alone.append(seconds_of(bare))
            first.append(_seconds_to_grid(folder))
            wait_for_archive(folder / "cache")
            alone.append(seconds_of(bare))
            later.append(_seconds_to_grid(folder))
    return [
        _compared("demo to its first grid, first time on a machine", first, alone, at_most=2),
        _compared("demo to its first grid, later", later, alone, at_most=1.3),
    ]


def _compared(name: str, ours: list[float], peer: list[float], *, at_most: float) -> Result:
    """Compare medians, and show how far apart the samples are: of a busy machine a ratio says little."""
    detail = f"{min(ours):.1f} to {max(ours):.1f} s; bare: {min(peer):.1f} to {max(peer):.1f} s"
    return duration(name, median(ours), median(peer), at_most=at_most, detail=detail)


def _seconds_to_grid(folder: Path) -> float:
    """Start the demo, and return when its first grid was there; the rest of it is not measured."""
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    began = time.perf_counter()
    with subprocess.Popen(
        [SEALBOOK, "demo"], cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert any(line.rstrip().endswith(_LEGEND) for line in process.stdout), "there was no grid"
        taken = time.perf_counter() - began
        for _ in process.stdout:
            pass
    assert process.returncode == 0
    return taken
