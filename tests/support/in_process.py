"""A stand-in for Spark that runs a stage's tasks in this process: the stage itself is the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Tasks:
    def __init__(self, tasks: Sequence[Any]) -> None:
        self.tasks = tasks
        self.work: Callable[[Any], Any] = lambda task: task

    def map(self, work: Callable[[Any], Any]) -> _Tasks:
        self.work = work
        return self


class _Context:
    defaultParallelism = 2  # noqa: N815 - Spark's name
    master = "local[2]"

    def parallelize(self, tasks: Sequence[Any], _slices: int) -> _Tasks:
        return _Tasks(tasks)

    def runJob(  # noqa: N802 - Spark's name
        self, data: _Tasks, gather: Callable[[Iterable[Any]], Any], indexes: Sequence[int]
    ) -> Any:
        return gather(data.work(data.tasks[index]) for index in indexes)

    def addJobTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        pass

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        pass


class _Session:
    sparkContext = _Context()  # noqa: N815 - Spark's name


def in_process_spark() -> SparkSession:
    """Return what `run_tasks` takes for a session: it has what tasks need, and nothing else."""
    return cast("SparkSession", _Session())
