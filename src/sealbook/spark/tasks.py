"""Tasks on Spark whose results come back one by one, as each ends.

A job hands its results over when all of it is done. Here each task is a job of its own, and as many are at
work at once as the cluster has cores: so progress shows, work that is done is kept, and it can be stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_tasks(
    spark: SparkSession, tasks: Sequence[Task], work: Callable[[Task], Result]
) -> Generator[Result, None, None]:
    """Do the work of each task on the cluster and yield what it returns, in the order they end.

    Closing the iterator, or an error, cancels what has not ended.
    """
    context = spark.sparkContext
    if not tasks:
        return
    tag = f"sealbook-{uuid4().hex}"
    data = context.parallelize(tasks, len(tasks)).map(work)

    def run(index: int) -> Result:
        context.addJobTag(tag)  # a property of this thread
        [result] = context.runJob(data, list, [index])
        return result

    waiting = iter(range(len(tasks)))
    with ThreadPoolExecutor(context.defaultParallelism, thread_name_prefix="task") as pool:
        running: set[Future[Result]] = set()
        try:
            while True:
                for index in waiting:
                    running.add(pool.submit(run, index))
                    if len(running) == context.defaultParallelism:
                        break
                if not running:
                    return
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        finally:
            context.cancelJobsWithTag(tag)


def attempt_number() -> int:
    """Return how often the task at work in this process was tried before; 0 outside Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.attemptNumber() if context else 0
