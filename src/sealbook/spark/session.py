"""The Spark session of a book: quick to start, silent, and tuned for many small tasks."""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any

from sealbook.config import SparkSettings
from sealbook.errors import ConfigError
from sealbook.spark.class_archive import ClassArchive
from sealbook.spark.connect import connect_session, is_connect, refuse_connect, uses_connect
from sealbook.spark.java import JavaProcess, find_java, find_spark

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

TASK_TRIES = 4
"""How often a task is tried. On a cluster that is Spark's default; locally it would be once."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_PYTHON = "spark.pyspark.python"
_CLASS_PATH = "spark.driver.extraClassPath"

_LOCAL = re.compile(r"local(?:\[(?P<threads>[0-9]+|\*)(?:,\s*(?P<tries>[0-9]+))?\])?")
_OTHER_ARCHIVE = re.compile(r"-Xshare|SharedArchiveFile|ArchiveClassesAtExit")
_FOR_SHORT_WORK = {
    # The compiler that is quick to compile. Code of the other is only quicker where Java itself reads rows.
    "-XX:TieredStopAtLevel=1": re.compile(r"-XX:[+-]?Tiered"),
    # Java refuses two collectors.
    "-XX:+UseSerialGC": re.compile(r"-XX:\+Use\w*GC\b"),
}
"""Options for the Java of a command, and by what those are known that a user has chosen in their place."""
_JAVA_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")

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

_java: JavaProcess | None = None


def start_java(settings: SparkSettings) -> None:
    """Begin to start Java, if this process has none, and return at once; `spark_session` waits for it."""
    global _java
    if uses_connect(settings.master):
        raise refuse_connect()
    if (_java is None or not _java.is_running) and not _has_context():
        if is_local(settings.master):
            # Workers of this machine need the packages of this interpreter.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        elif _PYTHON in settings.config:
            os.environ["PYSPARK_PYTHON"] = settings.config[_PYTHON]  # PySpark itself looks nowhere else
        configuration = spark_configuration(settings, _archive_options(settings))
        _java = JavaProcess(configuration, {} if is_local(settings.master) else _for_planning())


def spark_session(settings: SparkSettings) -> SparkSession:
    """Return the session of this process; start one by the settings if there is none."""
    return connect_session(settings.master) if uses_connect(settings.master) else stage_session(settings)


def stage_session(settings: SparkSettings) -> SparkSession:
    """Do the same for stages; ConfigError for Spark Connect, which cannot do what they do."""
    start_java(settings)
    from pyspark.sql import SparkSession  # while Java starts

    active = SparkSession.getActiveSession()
    if active is None:
        if not _has_context():
            _start(settings)
        active = SparkSession.builder.getOrCreate()
        _cancel_jobs_at_interrupt(active)
    return prepared(active, settings)


def prepared(session: SparkSession, settings: SparkSettings) -> SparkSession:
    """Return a session when its executors have what tasks need; ConfigError if they cannot have it."""
    if not is_connect(session) and not is_local(session.sparkContext.master):
        from sealbook.spark.executors import prepare_executors

        prepare_executors(session.sparkContext, settings)
    return session


def is_local(master: str | None) -> bool:
    """Say whether tasks run on this machine, with the packages that are here."""
    return master is not None and master.startswith("local")


def is_gone() -> bool:
    """Say whether Java was told to end, or ended by itself: there are no jobs any more."""
    return _java is not None and not _java.is_running


def close_session(session: SparkSession) -> None:
    """Stop the session, and return when Java has ended."""
    session.stop()
    if _java is not None:
        _java.finish()


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


def spark_configuration(settings: SparkSettings, java_options: Sequence[str] = ()) -> dict[str, str]:
    """Return what Spark is started with: our defaults, and what the settings say in their place."""
    local = _LOCAL.fullmatch(settings.master)
    master = settings.master
    if local and not local["tries"]:
        master = f"local[{local['threads'] or 1},{TASK_TRIES}]"
    chosen = {**_DEFAULTS, **(_LOCAL_DEFAULTS if local else {}), **settings.config, "spark.master": master}
    quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
    chosen[JAVA_OPTIONS] = " ".join((quiet, *java_options, _given_options(settings))).rstrip()
    return chosen


def class_archive_of(settings: SparkSettings) -> ClassArchive | None:
    """Return the archive of classes that fits the settings; None if Java is to start without."""
    if not settings.class_archive or not _LOCAL.fullmatch(settings.master):
        return None
    if _OTHER_ARCHIVE.search(settings.config.get(JAVA_OPTIONS, "")):
        return None
    return ClassArchive.of(find_java(), find_spark(), sorted(_fitting(settings).values()))


def _for_planning() -> dict[str, str]:
    """Return what Spark needs to plan reads of a data source: here, but by a Python like the executors'."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _has_context() -> bool:
    """Say whether this process has a Spark context; PySpark is not loaded to find that out."""
    context = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._active_spark_context is not None  # noqa: SLF001


def _in_a_thread(work: Callable[[], None]) -> None:
    """Do the work in a thread of its own, where PySpark leaves the handlers of signals as they are, and wait.

    Nothing is imported meanwhile: PySpark's modules import each other in circles, which needs one thread.
    """
    done: Future[None] = Future()

    def run() -> None:
        try:
            work()
            done.set_result(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            done.set_exception(error)

    Thread(target=run, name="spark-start", daemon=True).start()
    done.result()


def _start(settings: SparkSettings) -> None:
    """Start a session; ConfigError if Spark does not: the cluster is not there, or refuses a setting."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from sealbook.spark.tasks import innermost

    try:
        _in_a_thread(lambda: _start_context(settings))
    except (PySparkException, Py4JError) as error:
        if is_gone():
            raise
        stopped = "the master does not answer, or has ended the application"
        why = stopped if "stopped SparkContext" in str(error) else innermost(error)
        raise ConfigError(
            f"Spark does not start on {settings.master}: {why}",
            remedy="Look at `spark` in sealbook.yaml, and whether the master can be reached from here.",
        ) from error


def _start_context(settings: SparkSettings) -> None:
    from pyspark import SparkConf, SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    # An error is reported by whoever catches it; PySpark would log it besides, stack trace and all.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    conf = SparkConf().setAll(sorted(spark_configuration(settings).items()))
    is_first = SparkContext._gateway is None  # noqa: SLF001 - there is no public way to ask
    gateway = _java.gateway() if _java is not None and is_first else None
    _silence_when_gone(SparkContext(conf=conf, gateway=gateway))
    SparkSession.builder.config(conf=conf).getOrCreate()


def _silence_when_gone(context: SparkContext) -> None:
    """Let the server for accumulators print no traceback when Java ends because we end it."""
    server: Any = context._accumulatorServer  # noqa: SLF001 - PySpark has no other place for it
    report = server.handle_error
    server.handle_error = lambda *arguments: None if is_gone() else report(*arguments)


def _given_options(settings: SparkSettings) -> str:
    """Return the options of Java that the settings ask for; a command's are fit for short work."""
    given = settings.config.get(JAVA_OPTIONS, "")
    if not settings.for_command or not _LOCAL.fullmatch(settings.master):
        return given
    chosen = " ".join((given, *(os.environ.get(name, "") for name in _JAVA_VARIABLES)))
    short = [option for option, instead in _FOR_SHORT_WORK.items() if not instead.search(chosen)]
    return " ".join((*short, given)).rstrip()


def _fitting(settings: SparkSettings) -> dict[str, str]:
    """Return the settings that change which classes Java loads, or from where."""
    given = {JAVA_OPTIONS: _given_options(settings), _CLASS_PATH: settings.config.get(_CLASS_PATH, "")}
    return {name: value for name, value in given.items() if value}


def _archive_options(settings: SparkSettings) -> list[str]:
    """Return the options by which Java uses an archive of classes; if there is none, have it made at exit."""
    archive = class_archive_of(settings)
    if archive is None:
        return []
    options = archive.java_options()
    if not options:
        atexit.register(_leave_archive, archive, _fitting(settings))
    return options


def _leave_archive(archive: ClassArchive, fits: dict[str, str]) -> None:
    if _java is not None and _java.is_running and not archive.file.exists():
        archive.leave_to_be_made(fits)


def _cancel_jobs_at_interrupt(session: SparkSession) -> None:
    """Have Ctrl-C cancel jobs, as PySpark has it, in a program that does nothing about Ctrl-C itself."""
    if (
        current_thread() is not main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        return

    def cancel(_number: int, _frame: Any) -> None:
        try:
            session.sparkContext.cancelAllJobs()
        finally:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, cancel)
