"""R-WH-4: SIGKILL of the driver at each step of a load: readers see old or new, the next load converges.

A reader is at work all the while, in a process of its own: before the kill, after it, during the next load.
What a kill of a worker does is in `tests/spark/test_load.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sealbook.ledger import open_ledger
from sealbook.model import PartitionKey, RunId
from tests.support.extraction import demo_keys
from tests.support.loading import Rows, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

KEYS = demo_keys(customers=3, days=4)

# Where the driver dies: `die` is called before or after what is replaced.
STEPS = {
    "before_staging": "loading.run_tasks = lambda *_: die()",
    "in_a_task": (
        "loading.Stager = partial("
        "KilledStager, moment=Moment.HALF_STAGED, marker=str(folder / 'killed'), driver=os.getpid())"
    ),
    "half_staged": "Loading._take = lambda *_: die()",
    "staged": "Loading._publish = lambda *_: die()",
    "in_the_swap": "after(rows, 'publish')",
    "after_a_batch": "loading._BATCH = 3; after(Loading, '_publish')",
}

PROGRAM = """
import os, signal, sys
from functools import partial
from pathlib import Path
from sealbook.config import SparkSettings
from sealbook.ledger import open_ledger
from sealbook.ledger.pointers import rows
from sealbook.spark.session import spark_session
from sealbook.load import loading
from sealbook.load.loading import Loading
from tests.support.loading import Warehouse
from tests.support.stagers import KilledStager, Moment

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def after(owner, name):
    do = getattr(owner, name)
    setattr(owner, name, lambda *arguments: (do(*arguments), die()))

folder = Path(sys.argv[1])
exec(sys.argv[2])
with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
    # One core, and tasks of three, where other loads have two, and tasks of one: the bytes are the same.
    Warehouse(folder, ledger).load(spark_session(SparkSettings(master="local[1]")))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[tuple[Warehouse, RunId]]:
    """A warehouse with one run published, and a newer one accepted, that no load has seen yet."""
    folder = tmp_path_factory.mktemp("runs")
    with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
        warehouse = Warehouse(folder, ledger)
        warehouse.accept(KEYS, warehouse.seal(KEYS))
        warehouse.load(spark)
        newer = warehouse.seal(KEYS, restatement=3)
        warehouse.accept(KEYS, newer)
        yield warehouse, newer


@dataclass(frozen=True)
class Undisturbed:
    """What a load gives that nobody kills, and what there was before it."""

    old: dict[PartitionKey, Rows]
    new: dict[PartitionKey, Rows]
    files: dict[str, bytes]


@pytest.fixture(scope="module")
def undisturbed(
    runs: tuple[Warehouse, RunId], tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Undisturbed:
    """Load once without a kill."""
    folder = shutil.copytree(runs[0].folder, tmp_path_factory.mktemp("undisturbed") / "book")
    with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
        warehouse = Warehouse(folder, ledger)
        old = warehouse.rows()
        warehouse.load(spark)
        return Undisturbed(old, warehouse.rows(), warehouse.files())


def read_on(folder: Path, expected: Undisturbed, done: Event, answers: Queue[Any]) -> None:
    """Read until told to stop: each partition is wholly the old run or the new one, and never goes back."""
    replaced: set[PartitionKey] | None = None
    try:
        with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
            warehouse = Warehouse(folder, ledger)
            is_last = False
            while not is_last:
                is_last = done.is_set()
                found = warehouse.rows()
                assert found.keys() == set(KEYS)
                new = {key for key, rows in found.items() if rows == expected.new[key]}
                assert all(rows == expected.old[key] for key, rows in found.items() if key not in new)
                if replaced is None:
                    answers.put(None)  # it is at work
                assert new >= (replaced or set())
                replaced = new
        answers.put(len(new))
    except BaseException:
        answers.put(traceback.format_exc())
        raise


@contextmanager
def reading(processes: ForkServerContext, folder: Path, expected: Undisturbed) -> Iterator[None]:
    """Have a reader at work during the block; at its end, it must have come to see all of the new run."""
    done, answers = processes.Event(), processes.Queue()
    process = processes.Process(target=read_on, args=(folder, expected, done, answers))
    process.start()
    try:
        assert (failure := answers.get(timeout=120)) is None, failure
        yield
    finally:
        done.set()
        answer = answers.get(timeout=120)
        process.join()
    assert answer == len(KEYS), answer


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step(
    runs: tuple[Warehouse, RunId],
    undisturbed: Undisturbed,
    tmp_path: Path,
    spark: SparkSession,
    processes: ForkServerContext,
    step: str,
) -> None:
    original, newer = runs
    folder = shutil.copytree(original.folder, tmp_path / "book")
    with (
        reading(processes, folder, undisturbed),
        open_ledger(f"sqlite:///{folder}/book.db") as ledger,
    ):
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(folder), STEPS[step]],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            timeout=240,
        )

        assert ended.returncode == -signal.SIGKILL, ended.stderr
        warehouse = Warehouse(folder, ledger)
        published = {each.key: each for each in warehouse.published()}
        assert published.keys() == set(KEYS)
        warehouse.check_intact()
        new = [key for key, each in published.items() if each.run_id == newer]
        assert (0 < len(new) < len(KEYS)) if step == "after_a_batch" else not new

        warehouse.load(spark)
        assert sum(each.compared for each in ledger.pointers.drift_sums()) == len(KEYS)  # each once

        assert {each.run_id for each in warehouse.published()} == {newer}
        assert warehouse.files() == undisturbed.files
        warehouse.check_intact()
