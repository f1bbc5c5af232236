"""Side by side in one run: the machine's noise hits both, so only the ratio means something."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

NO_BOUND = "-"
BUSY = "This is a time and not a ratio: where others work on the machine too, it is longer."
"""Why a bound of seconds is missed, where the processor time beside it says so."""


@dataclass(frozen=True, slots=True)
class Result:
    """One figure: `value` is what was measured, `bound` what was promised; `why` it is missed, if known."""

    name: str
    value: float
    unit: str
    bound: str
    holds: bool
    detail: str = ""
    why: str = ""

    @property
    def is_bound(self) -> bool:
        """Whether anything was promised."""
        return self.bound != NO_BOUND


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


def speed(name: str, ours: float, peer: float, *, at_least: float, detail: str = "", why: str = "") -> Result:
    """Compare by speed: 1 is as fast as the peer, 2 twice as fast."""
    ratio = peer / ours
    return Result(name, ratio, "x speed", f">= {at_least}", ratio >= at_least, detail, why)


def duration(
    name: str, ours: float, peer: float, *, at_most: float, detail: str = "", why: str = ""
) -> Result:
    """Compare by time: 1 takes as long as the peer, 2 twice as long."""
    ratio = ours / peer
    return Result(name, ratio, "x time", f"<= {at_most}", ratio <= at_most, detail, why)


def noted(name: str, value: float, unit: str, detail: str = "") -> Result:
    """Note what is worth knowing, and was promised by nobody."""
    return Result(name, value, unit, NO_BOUND, holds=True, detail=detail)


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
