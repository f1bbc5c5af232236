"""The Spark session of a book: quick to start, silent, and tuned for many small tasks."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from sealbook.config import SparkSettings
from sealbook.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_TRIES = 4
"""How often a task is tried. On a cluster that is Spark's default; locally it would be once."""

_LOCAL = re.compile(r"local(?:\[(?P<threads>[0-9]+|\*)(?:,\s*(?P<tries>[0-9]+))?\])?")
_STDERR = 2
_INCUBATOR_NOTICE = b"WARNING: Using incubator modules"
_JAVA_REMEDY = "Install Java 17 or newer, or set JAVA_HOME to one; `scripts/ensure-java` helps."

_DEFAULTS = {
    "spark.app.name": "sealbook",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # Rows go to Python and back in large pieces, past the network stack.
    "spark.buffer.size": "1048576",
    # A crash of a Python worker then says where, not only that it happened.
    "spark.python.worker.faulthandler.enabled": "true",
}
_LOCAL_DEFAULTS = {
    "spark.python.daemon.module": "sealbook.spark.daemon",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}


def spark_session(settings: SparkSettings) -> SparkSession:
    """Return the session of this process; start one by the settings if there is none."""
    from pyspark import SparkConf, SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    # An error is reported by whoever catches it; PySpark would log it besides, stack trace and all.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    conf = SparkConf().setAll(sorted(_configuration(settings).items()))
    if SparkContext._active_spark_context is None:  # noqa: SLF001 - there is no public way to ask
        if settings.master.startswith("local"):
            # Workers of this machine need the packages of this interpreter.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        SparkContext(conf=conf, gateway=_launch_java(conf))
    return SparkSession.builder.config(conf=conf).getOrCreate()


def is_running(spark: SparkSession) -> bool:
    """Say whether the session can still be given work."""
    from py4j.protocol import Py4JError

    try:
        return not spark.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 - no public way tells
    except (Py4JError, OSError, AttributeError):  # the JVM is gone, or was told to go
        return False


def task_tries(spark: SparkSession) -> int:
    """Return how often Spark tries a task before it gives the job up."""
    context = spark.sparkContext
    if match := _LOCAL.fullmatch(context.master or ""):
        return int(match["tries"] or 1)
    return int(context.getConf().get("spark.task.maxFailures") or TASK_TRIES)


def _configuration(settings: SparkSettings) -> dict[str, str]:
    local = _LOCAL.fullmatch(settings.master)
    master = settings.master
    if local and not local["tries"]:
        master = f"local[{local['threads'] or 1},{TASK_TRIES}]"
    chosen = {**_DEFAULTS, **(_LOCAL_DEFAULTS if local else {}), **settings.config, "spark.master": master}
    quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
    for name in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")[: 1 if local else 2]:
        chosen[name] = f"{quiet} {settings.config.get(name, '')}".rstrip()
    return chosen


def _launch_java(conf: Any) -> Any:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    home = os.environ.get("JAVA_HOME")
    if shutil.which("java" if home is None else str(Path(home) / "bin" / "java")) is None:
        where = "on PATH" if home is None else f"in JAVA_HOME, which is {home}"
        raise ConfigError(f"Spark needs Java, and there is none {where}", remedy=_JAVA_REMEDY)
    said = _StandardError()
    try:
        return launch_gateway(conf, {"stderr": said.file_descriptor})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise ConfigError(f"Spark could not start: {said.first_line()}", remedy=_JAVA_REMEDY) from error
    finally:
        said.close()


class _StandardError:
    """What the Java process writes to stderr, passed on but for a notice that says nothing to anybody."""

    def __init__(self) -> None:
        read, self.file_descriptor = os.pipe()
        self._first_line = b""
        self._thread = Thread(target=self._pass_on, args=(read,), name="spark-stderr", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the writing end to the process that inherited it."""
        if self.file_descriptor >= 0:
            os.close(self.file_descriptor)
            self.file_descriptor = -1

    def first_line(self) -> str:
        """Return the first that the process said, once it has ended."""
        self.close()
        self._thread.join(timeout=5)
        return self._first_line.decode(errors="replace").strip() or "Java ended without a word"

    def _pass_on(self, read: int) -> None:
        with os.fdopen(read, "rb") as pipe:
            for line in pipe:
                self._first_line = self._first_line or line
                if not line.startswith(_INCUBATOR_NOTICE):
                    os.write(_STDERR, line)
