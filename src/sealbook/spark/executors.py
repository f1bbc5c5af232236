"""The executors of a cluster: they are sent what tasks need, and looked at before the first job."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import requires, version
from typing import TYPE_CHECKING
from weakref import WeakSet

from sealbook.config import SOURCE_ENTRY_POINTS, SparkSettings
from sealbook.errors import ConfigError
from sealbook.spark.packages import package_archive
from sealbook.spark.tasks import innermost

if TYPE_CHECKING:
    from pyspark import SparkContext

_FOLDER = "sealbook-packages"
_PATH = "PYTHONPATH"
_MODULES = ("pyspark", "pyarrow", "sealbook", "msgspec", "obstore")
_OTHER_PYTHON = re.compile(r"different version: (\S+) than that in driver: ([\d.]+)")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')

_VERSION = version("sealbook")
_PYTHON_REMEDY = "Name a Python of theirs that fits by `spark.pyspark.python` in `spark.config`."
_INSTALL = f"Install Sealbook {_VERSION} and its sources there"

_prepared: WeakSet[SparkContext] = WeakSet()


def prepare_executors(context: SparkContext, settings: SparkSettings) -> None:
    """Send executors what they need, once; ConfigError says in one sentence what they then still lack."""
    if context in _prepared:
        return
    if settings.ship_packages:
        _send(context, settings.sources)
    for executor in _look(context, settings):
        _check(executor, settings)
    _prepared.add(context)


def _send(context: SparkContext, sources: Iterable[str]) -> None:
    """Have packages unpacked where the tasks of an executor work, and found there by Python.

    They are unpacked here too, for the Python that plans reads of a data source.
    """
    from pyspark import SparkFiles

    context.addArchive(f"{package_archive(tuple(sources)).as_uri()}#{_FOLDER}")
    paths = (_FOLDER, SparkFiles.get(_FOLDER), context.environment.get(_PATH))
    context.environment[_PATH] = os.pathsep.join(filter(None, paths))


def _look(context: SparkContext, settings: SparkSettings) -> list[Mapping[str, str]]:
    """Return what executors say of themselves; as many are asked as there is room for tasks."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    number = context.defaultParallelism
    look = _looking(_MODULES, SOURCE_ENTRY_POINTS, settings.sources)
    try:
        return context.parallelize(range(number), number).map(look).collect()
    except (PySparkException, Py4JError) as error:
        raise _cannot_run(error, context) from error


def _looking(
    modules: tuple[str, ...], group: str, sources: tuple[str, ...]
) -> Callable[[int], Mapping[str, str]]:
    """Return a task that needs nothing of Sealbook: a function in a function is sent as code."""

    def look(_number: int) -> dict[str, str]:
        import importlib
        import socket
        import sys
        import sysconfig
        from importlib.metadata import entry_points

        said = {"python": f"{sys.executable} on {socket.gethostname()}", "platform": sysconfig.get_platform()}
        try:
            for name in modules:
                said["lacks"] = name
                said[name] = str(getattr(importlib.import_module(name), "__version__", ""))
            for source in sources:
                said["lacks"] = f"source {source}"
                [entry] = entry_points(group=group, name=source)
                entry.load()
        except Exception as error:  # noqa: BLE001 - whatever it is, the driver says it
            said["because"] = str(error)
        else:
            del said["lacks"]
        return said

    return look


def _check(executor: Mapping[str, str], settings: SparkSettings) -> None:
    """Refuse an executor that could not do what tasks do."""
    python, here = f"the executors' Python, {executor['python']},", sysconfig.get_platform()
    if settings.ship_packages:
        remedy = f"{_INSTALL}, and set `spark.ship_packages: false`."
        if executor["platform"] != here:
            raise ConfigError(
                f"{python} is for {executor['platform']}, and packages from here for {here}", remedy=remedy
            )
    else:
        remedy = f"{_INSTALL}, or have them sent: `spark.ship_packages: true`."
    _check_spark(executor, python)
    if "lacks" in executor:
        raise ConfigError(f"{python} lacks {executor['lacks']}: {executor['because']}", remedy=remedy)
    if executor["sealbook"] != _VERSION:
        raise ConfigError(
            f"{python} has Sealbook {executor['sealbook']}, and this is {_VERSION}", remedy=remedy
        )


def _check_spark(executor: Mapping[str, str], python: str) -> None:
    import pyspark

    theirs, ours = executor["pyspark"], pyspark.__version__
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise ConfigError(
            f"{python} has PySpark {theirs}, and this is {ours}",
            remedy="Install here the PySpark that the cluster has.",
        )
    least, arrow = _least_pyarrow(), executor.get("pyarrow")
    if arrow is None or int(arrow.partition(".")[0]) < least:
        lacks = "lacks pyarrow" if arrow is None else f"has pyarrow {arrow}, which is too old"
        raise ConfigError(
            f"{python} {lacks}", remedy=f"Install pyarrow {least} or newer there. Or: {_PYTHON_REMEDY}"
        )


def _least_pyarrow() -> int:
    [wanted] = [each for each in requires("sealbook") or () if each.startswith("pyarrow")]
    return int(wanted.partition(">=")[2])


def _cannot_run(error: Exception, context: SparkContext) -> ConfigError:
    """Say why the executors run no Python at all."""
    said = str(error)
    if other := _OTHER_PYTHON.search(said):
        ours = ".".join(map(str, sys.version_info[:2]))
        return ConfigError(f"the executors have Python {other[1]}, and this is {ours}", remedy=_PYTHON_REMEDY)
    if none := _NO_PYTHON.search(said):
        return ConfigError(f"the executors have no Python {none[1]}", remedy=_PYTHON_REMEDY)
    return ConfigError(
        f"the executors of {context.master} cannot run tasks: {innermost(error)}",
        remedy="The executors' logs say more.",
    )
