"""`python -m tests.support.validate_on_cluster RAW LEDGER PAYLOAD`: judge on executors; one is killed.

In a process of its own, since a process has one Spark session. Whoever reads the payload is held up until the
executor that it works for is dead.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sealbook.config import SparkSettings
from sealbook.ledger import open_ledger
from sealbook.spark.session import spark_session
from tests.support.gates import Gate
from tests.support.validation import Bench

_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def main(root: Path, url: str, payload: Path) -> None:
    """Judge all that is new, and fail unless everything was judged."""
    spark = spark_session(SparkSettings(master="local-cluster[2,1,1024]"))
    gate = Gate(payload)
    with open_ledger(url) as ledger, ThreadPoolExecutor(1) as pool:
        killing = pool.submit(_kill_executor, gate)
        outcome = Bench(root, ledger, spark).validate()
        killing.result()
    assert not outcome.not_judged, outcome.not_judged
    spark.stop()


def _kill_executor(gate: Gate) -> None:
    [executor] = [process for process in gate.wait_for_reader().parents() if _EXECUTOR in process.cmdline()]
    try:
        executor.kill()
        executor.wait()
    finally:
        gate.open()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
