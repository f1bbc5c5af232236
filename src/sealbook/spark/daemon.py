"""What Spark on this machine forks its Python workers from: `spark.python.daemon.module`.

Spark puts PySpark's archive in front of the path. There is no bytecode in it, so each new worker would compile
for a second or more what is installed, compiled, a few entries further down.
"""

from __future__ import annotations

import sys

MODULE = __name__


def prefer_installed(path: list[str]) -> list[str]:
    """Return a module search path without the archives that Spark put there."""
    return [entry for entry in path if not entry.endswith((".zip", ".jar"))]


def main() -> None:
    """Be PySpark's daemon."""
    sys.path[:] = prefer_installed(sys.path)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
