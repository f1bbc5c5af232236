"""How a load is divided among tasks: every order once, and no task that costs more than its work."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealbook.load.orders import Order, divide
from sealbook.model.artifacts import Artifact
from sealbook.raw import RawReader
from tests.support.extraction import demo_keys, demo_queries
from tests.support.runs import new_run_id

QUERIES = {("demo", name): query for name, query in demo_queries().items()}


@pytest.mark.parametrize(
    ("partitions", "cores", "tasks"),
    [(1, 2, 1), (3, 2, 2), (100, 2, 2), (100, 16, 15), (200, 2, 4), (1_000, 2, 8), (5_000, 2, 20)],
)
def test_small_plans_use_every_core_but_few_tasks(
    tmp_path: Path, partitions: int, cores: int, tasks: int
) -> None:
    """To start a task takes as long as to stage fifty small partitions."""
    run_id = new_run_id()
    orders = [
        Order(Artifact(key, run_id, "1"), record_count=10, copy=0, earlier=None, publishes=True)
        for key in demo_keys(partitions, 1)
    ]
    divided = divide(orders, QUERIES, RawReader.open(tmp_path), cores=cores)
    assert len(divided.tasks) == tasks
    staged = [unit.ordinal for task in divided.tasks for unit in task.units]
    assert sorted(staged) == list(range(partitions))
