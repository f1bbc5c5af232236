"""Tasks on Spark whose results come back one by one, as each ends.

A job hands its results over when all of it is done. Here each task is a job of its own, and as many are at
work at once as the cluster has cores: so progress shows, work that is done is kept, and it can be stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from sealbook.errors import Transient, first_line
from sealbook.spark.session import is_gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PYTHON_ERROR = re.compile(r"(?!org\.|java\.)[A-Za-z_][\w.]*: ")  # the last line of a traceback
_JAVA_ERROR = ": "  # how Py4J begins the line below "An error occurred while calling …"

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_tasks(
    spark: SparkSession,
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    given_up: list[tuple[Task, Exception]] | None = None,
) -> Generator[Result, None, None]:
    """Do the work of each task on the cluster and yield what it returns, in the order they end.

    Closing the iterator, or an error, cancels what has not ended. A task that Spark gives up is a Transient;
    but where a list for such is handed in, it goes there, and the others go on.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

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
        running: dict[Future[Result], int] = {}
        try:
            while True:
                for index in waiting:
                    running[pool.submit(run, index)] = index
                    if len(running) == context.defaultParallelism:
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    index = running.pop(future)
                    try:
                        result = future.result()
                    except (PySparkException, Py4JError) as error:
                        if is_gone():  # then it is no task's fault
                            raise
                        if given_up is None:
                            raise Transient(why_given_up(error)) from error
                        given_up.append((tasks[index], error))
                    else:
                        yield result
        finally:
            if not is_gone():
                context.cancelJobsWithTag(tag)


def why_given_up(error: Exception) -> str:
    """Say that Spark gave a job up, and why."""
    return f"Spark gave up: {innermost(error)}"


def innermost(error: Exception) -> str:
    """Return what is behind an error of PySpark: the Python error that it ends with, or else Java's first."""
    lines = str(error).splitlines()
    python = [line for line in lines if _PYTHON_ERROR.match(line)]
    java = [line.rpartition("Exception: ")[2] for line in lines if line.startswith(_JAVA_ERROR)]
    return (python[-1:] or java[:1] or [first_line(error)])[0].strip()


def attempt_number() -> int:
    """Return how often the task at work in this process was tried before; 0 outside Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.attemptNumber() if context else 0
