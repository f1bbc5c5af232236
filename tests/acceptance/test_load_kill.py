"""R-WH-4: SIGKILL of the driver at each step of a load: readers see old or new, the next load converges."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealbook.ledger import open_ledger
from sealbook.model import RunId
from tests.support.extraction import demo_keys
from tests.support.loading import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

KEYS = demo_keys(customers=3, days=4)

# Where the driver dies: `die` is called before or after what is replaced.
STEPS = {
    "before_staging": "loading.run_tasks = lambda *_: die()",
    "half_staged": "Loading._take = lambda *_: die()",
    "staged": "Loading._publish = lambda *_: die()",
    "in_the_swap": "after(rows, 'publish')",
    "after_a_batch": "loading._BATCH = 3; after(Loading, '_publish')",
}

PROGRAM = """
import os, signal, sys
from itertools import chain
from pathlib import Path
from sealbook.config import SparkSettings
from sealbook.ledger import open_ledger
from sealbook.ledger.pointers import rows
from sealbook.spark.session import spark_session
from sealbook.warehouse import loading
from sealbook.warehouse.loading import Loading
from tests.support.loading import Warehouse

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def after(owner, name):
    do = getattr(owner, name)
    setattr(owner, name, lambda *arguments: (do(*arguments), die()))

folder = Path(sys.argv[1])
exec(sys.argv[2])
with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
    Warehouse(folder, ledger).load(spark_session(SparkSettings(master="local[2]")))
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


@pytest.fixture(scope="module")
def never_killed(
    runs: tuple[Warehouse, RunId], tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> dict[str, bytes]:
    """What a load gives that nobody disturbs."""
    folder = shutil.copytree(runs[0].folder, tmp_path_factory.mktemp("never") / "killed")
    with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
        warehouse = Warehouse(folder, ledger)
        warehouse.load(spark)
        return warehouse.files()


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_each_step(
    runs: tuple[Warehouse, RunId],
    never_killed: dict[str, bytes],
    tmp_path: Path,
    spark: SparkSession,
    step: str,
) -> None:
    original, newer = runs
    folder = shutil.copytree(original.folder, tmp_path / "book")

    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), STEPS[step]],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with open_ledger(f"sqlite:///{folder}/book.db") as ledger:
        warehouse = Warehouse(folder, ledger)
        published = {each.key: each for each in warehouse.published()}
        assert published.keys() == set(KEYS)
        warehouse.check_intact()
        new = [key for key, each in published.items() if each.run_id == newer]
        assert (0 < len(new) < len(KEYS)) if step == "after_a_batch" else not new

        warehouse.load(spark)

        assert {each.run_id for each in warehouse.published()} == {newer}
        assert warehouse.files() == never_killed
        warehouse.check_intact()
