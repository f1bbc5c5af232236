"""`python -m bench.validate_usage FOLDER`: judge what is sealed there, and print as JSON what that took.

In a process of its own, since the peak of a process's memory is that of its whole life.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import psutil

from bench.validate_load import Books, accept_all, session

_PEAK = re.compile(r"VmHWM:\s+([0-9]+) kB")


def peak_megabytes(process: psutil.Process) -> float:
    """Return the most memory that a process has had resident."""
    match = _PEAK.search(Path(f"/proc/{process.pid}/status").read_text())
    assert match is not None
    return int(match[1]) / 1024


def cpu_seconds() -> float:
    """Return the processor time of this process and all that it has started."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(times.user + times.system for times in (each.cpu_times() for each in processes))


def main(folder: Path) -> None:
    """Judge all runs below `folder/raw`."""
    spark = session()
    used, started = cpu_seconds(), time.perf_counter()
    with Books(folder, spark).new(folder / "raw") as validator:
        accepted = accept_all(validator)
    elapsed = time.perf_counter() - started
    used = cpu_seconds() - used
    driver = psutil.Process()
    children = driver.children(recursive=True)
    java = [process for process in children if process.name() == "java"]
    workers = [process for process in children if process.name().startswith("python")]
    print(
        json.dumps(
            {
                "accepted": accepted,
                "seconds": elapsed,
                "cores_busy": used / elapsed,
                "driver_megabytes": sum(map(peak_megabytes, [driver, *java])),
                "worker_megabytes": max(map(peak_megabytes, workers)),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
