"""`python -m bench.validate_usage FOLDER`: judge what is sealed there, and print as JSON what that took.

In a process of its own, since the peak of a process's memory is that of its whole life.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import psutil

from bench.usage import cpu_seconds, peak_megabytes, started
from bench.validate_load import Books, accept_all, session


def main(folder: Path) -> None:
    """Judge all runs below `folder/raw`."""
    spark = session()
    used, began = cpu_seconds(), time.perf_counter()
    with Books(folder, spark).new(folder / "raw") as validator:
        accepted = accept_all(validator)
    elapsed = time.perf_counter() - began
    used = cpu_seconds() - used
    print(
        json.dumps(
            {
                "accepted": accepted,
                "seconds": elapsed,
                "cores_busy": used / elapsed,
                "driver_megabytes": sum(map(peak_megabytes, [psutil.Process(), *started("java")])),
                "worker_megabytes": max(map(peak_megabytes, started("python"))),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
