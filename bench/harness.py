"""Side by side in one run: the machine's noise hits both, so only the ratio means something."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Result:
    """One comparison: `value` is what was measured, `bound` what was promised."""

    name: str
    value: float
    unit: str
    bound: str
    holds: bool
    detail: str = ""


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long it takes to do something once."""
    gc.collect()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def seconds(rounds: int, *contenders: Callable[[], object]) -> list[float]:
    """Return the best time of each contender over some rounds, taken in turn."""
    return [min(times) for times in _times(rounds, contenders)]


def medians(rounds: int, *contenders: Callable[[], object]) -> list[float]:
    """Return the median time of each contender over some rounds, taken in turn."""
    return [median(times) for times in _times(rounds, contenders)]


def _times(rounds: int, contenders: Sequence[Callable[[], object]]) -> Iterable[tuple[float, ...]]:
    """Return the times of each contender."""
    taken = [[seconds_of(contender) for contender in contenders] for _ in range(rounds)]
    return zip(*taken, strict=True)


def speed(name: str, ours: float, peer: float, *, at_least: float, detail: str = "") -> Result:
    """Compare by speed: 1 is as fast as the peer, 2 twice as fast."""
    ratio = peer / ours
    return Result(name, ratio, "x speed", f">= {at_least}", ratio >= at_least, detail)


def duration(name: str, ours: float, peer: float, *, at_most: float, detail: str = "") -> Result:
    """Compare by time: 1 takes as long as the peer, 2 twice as long."""
    ratio = ours / peer
    return Result(name, ratio, "x time", f"<= {at_most}", ratio <= at_most, detail)


def megabytes(name: str, value: float, *, at_most: float) -> Result:
    """Hold a peak of resident memory against its bound."""
    return Result(name, value, "MB", f"< {at_most}", value < at_most)


_PRINT_PEAK = """
for line in open("/proc/self/status"):
    if line.startswith("VmHWM:"):
        print(line.split()[1])
"""


def peak_memory(code: str) -> float:
    """Run Python code in a process of its own and return its peak resident memory in MB.

    The process itself is asked: what is known of it as a child counts the memory of its parent too.
    """
    ended = subprocess.run(
        [sys.executable, "-c", f"{code}\n{_PRINT_PEAK}"], check=True, capture_output=True, text=True
    )
    return int(ended.stdout.split()[-1]) / 1024


def report(title: str, results: list[Result]) -> bool:
    """Print the results, keep them as JSON, and say whether every bound held."""
    table = Table("what", "measured", "bound", "", "detail", title=title, title_justify="left")
    for result in results:
        mark = "[green]holds[/]" if result.holds else "[red]broken[/]"
        table.add_row(result.name, f"{result.value:.2f} {result.unit}", result.bound, mark, result.detail)
    Console(width=150).print(table)
    RESULTS.mkdir(exist_ok=True)
    content = json.dumps([asdict(result) for result in results], indent=2)
    (RESULTS / f"{title}.json").write_text(content + "\n")
    return all(result.holds for result in results)
