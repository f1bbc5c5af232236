"""Packages that lie apart, because nothing else may come to need them: `make setup` puts them there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CONNECT, AIRFLOW, DBT = (Path(sys.prefix) / name for name in ("connect", "airflow", "dbt"))
SUPPORT = Path(__file__).parent


def run_beside(
    packages: Path, *arguments: str, cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process that finds these packages first; both its outputs are one."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(packages), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
