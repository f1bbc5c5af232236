"""What Spark on this machine forks its Python workers from: its setting `spark.python.daemon.module`.

Spark puts its archives of PySpark in front of the module search path. They hold no bytecode, so each new
worker would compile for a second or more what is installed, compiled, a few entries further down.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import PurePath

_ARCHIVES = ("pyspark.zip", "py4j-*-src.zip", "spark-core_*.jar")


def without_archives(path: Sequence[str]) -> list[str]:
    """Return the search path without Spark's archives; as it is, where PySpark is in nothing else."""
    others = [entry for entry in path if not any(map(PurePath(entry).match, _ARCHIVES))]
    return others if PathFinder.find_spec("pyspark", others) else list(path)


def main() -> None:
    """Be PySpark's own daemon, with another search path."""
    sys.path[:] = without_archives(sys.path)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
